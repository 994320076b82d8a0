// What serves every kind of attention and not the scaled product alone: other scores, centers of local attention.
#ifndef MULCIBER_ATTENTION_GENERAL_GLSL
#define MULCIBER_ATTENTION_GENERAL_GLSL

layout(constant_id = CONSTANT_SCORE) const uint SCORE = SCORE_DOT;
layout(constant_id = CONSTANT_SLOPE) const float SLOPE = 0;
layout(constant_id = CONSTANT_HARD) const uint HARD = 0;
layout(constant_id = CONSTANT_CENTER) const uint CENTER = CENTER_NONE;
layout(constant_id = CONSTANT_REACH) const float REACH = 0;
layout(constant_id = CONSTANT_NARROWNESS) const float NARROWNESS = 0;

/// What column d of a query and a key adds to a score.
float score_term(float q, float k, uint head, uint d) {
  if (SCORE == SCORE_DOT) return q * k;
  if (SCORE == SCORE_DISTANCE) return -(q - k) * (q - k);
  float sum = q + k;
  float hidden = SCORE == SCORE_ADDITIVE ? safe_tanh(sum) : (sum < 0.0 ? SLOPE * sum : sum);
  return hidden * uintBitsToFloat(AT(control, uint(params.score_vector) + head * HEAD_SIZE + d));
}

/// Where local attention looks from query n: its position, or keys * sigmoid(what control holds for it).
float center_of(uint kv_row, uint n, int count) {
  if (CENTER != CENTER_PREDICTED) return float(position_of(n, count));
  uint at = uint(params.centers) + query_row(params.first_kv_row + kv_row, n) * query_heads() + query_head(n);
  float logit = uintBitsToFloat(AT(control, at));
  return float(min(count, int(params.kv_len))) / (1.0 + exp(-clamp(logit, -80.0, 80.0)));
}

/// As visible_keys, and within reach of a predicted center.
uvec2 reachable_keys(uint kv_row, uint n, int count) {
  uvec2 range = visible_keys(n, count);
  if (CENTER != CENTER_PREDICTED || REACH == 0.0) return range;
  float center = center_of(kv_row, n, count);
  uint first = max(range.x, uint(max(ceil(center - REACH), 0.0)));
  uint end = min(range.y, uint(floor(center + REACH)) + 1u);
  return uvec2(min(first, end), end);
}

float center_factor(float center, uint key) {
  float distance = float(key) - center;
  return exp(-NARROWNESS * distance * distance);
}

bool reaches(uint key, uvec2 range) { return key >= range.x && key < range.y; }

#endif
