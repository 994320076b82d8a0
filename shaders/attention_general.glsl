// Attention beyond scaled dot products: other scores, hard attention, centers of local attention.
#ifndef MULCIBER_ATTENTION_GENERAL_GLSL
#define MULCIBER_ATTENTION_GENERAL_GLSL

layout(constant_id = CONSTANT_SCORE) const uint SCORE = SCORE_DOT;
layout(constant_id = CONSTANT_SLOPE) const float SLOPE = 0;
layout(constant_id = CONSTANT_HARD) const uint HARD = 0;
layout(constant_id = CONSTANT_CENTER) const uint CENTER = CENTER_NONE;
layout(constant_id = CONSTANT_REACH) const float REACH = 0;
layout(constant_id = CONSTANT_NARROWNESS) const float NARROWNESS = 0;

const bool WEIGHTED = SCORE == SCORE_ADDITIVE || SCORE == SCORE_LEAKY;  // by a vector in control
// Queries of a tile may see different keys, so a key of one may be a masked NaN for another.
const bool UNEQUAL = MASKED || CENTER == CENTER_PREDICTED;

/// Column d of the score vector.
float score_weight(uint head, uint d) {
  return WEIGHTED ? uintBitsToFloat(AT(control, uint(params.score_vector) + head * HEAD_SIZE + d))
                  : 0.0;
}
vec4 score_weights(uint head, uint d) {
  return vec4(score_weight(head, d), score_weight(head, d + 1u), score_weight(head, d + 2u),
              score_weight(head, d + 3u));
}

/// The term that a column of a query and a key adds to a score; or the sum of four terms.
float score_term(float q, float k, float weight) {
  if (SCORE == SCORE_DOT) return q * k;
  if (SCORE == SCORE_DISTANCE) return -(q - k) * (q - k);
  float sum = q + k;
  return weight * (SCORE == SCORE_ADDITIVE ? safe_tanh(sum) : (sum < 0.0 ? SLOPE * sum : sum));
}
float score_terms(vec4 q, vec4 k, vec4 weights) {
  if (SCORE == SCORE_DOT) return dot(q, k);
  vec4 sum = vec4(0);
  [[unroll]] for (uint e = 0u; e < 4u; ++e) sum[e] = score_term(q[e], k[e], weights[e]);
  return sum.x + sum.y + sum.z + sum.w;
}

/// The center of local attention for query n: its position, or keys * sigmoid(its logit in
/// control).
float center_of(uint kv_row, uint n, int count) {
  if (CENTER != CENTER_PREDICTED) return float(position_of(n, count));
  uint at = uint(params.centers) + query_row(params.first_kv_row + kv_row, n) * query_heads() +
            query_head(n);
  float logit = uintBitsToFloat(AT(control, at));
  return float(min(count, int(params.kv_len))) / (1.0 + exp(-clamp(logit, -80.0, 80.0)));
}

/// visible_keys(), limited to the reach of a predicted center.
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

/// Whether a key belongs to a query, whose tile may begin before the query's keys.
bool within(uint key, uvec2 range) {
  return key < range.y && (key >= range.x || (WINDOWED == 0u && CENTER != CENTER_PREDICTED));
}

#endif
