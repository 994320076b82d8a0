// Chooses the experts of each token and their gates. An invocation takes a token, because experts
// are few. Earlier choices are not stored: the next choice is the best expert after the last one,
// by score and then by index.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "interface.h"
#include "routing.h"
#define BUFFER_COUNT 3
#include "buffers.glsl"

layout(constant_id = ROUTE_SIGMOID) const uint SIGMOID = 0;
layout(constant_id = ROUTE_BIAS) const uint BIAS = 0;
layout(constant_id = ROUTE_TWO_BEST) const uint TWO_BEST = 0;
layout(constant_id = ROUTE_NORMALIZE) const uint NORMALIZE = 0;

PARAMS(RouteParams)
BUFFER(0, readonly, logits, float)
BUFFER(1, readonly, bias, float)
BUFFER(2, , routes, uint)

const float kNone = -3.0e38;
uint first;  // first of the token's logits
float maximum, total;

float score_of(uint expert) {
  const float logit = AT(logits, first + expert);
  return SIGMOID == 1 ? 1.0 / (1.0 + exp(min(-logit, 80.0))) : exp(logit - maximum) / total;
}

float choice_of(uint expert) {
  return BIAS == 1 ? score_of(expert) + AT(bias, expert) : score_of(expert);
}

float group_value(uint group) {
  const uint each = params.experts / params.groups;
  float best = kNone, second = kNone;
  for (uint i = 0; i < each; ++i) {
    const float choice = choice_of(group * each + i);
    second = max(second, min(best, choice));
    best = max(best, choice);
  }
  return TWO_BEST == 1 ? best + second : best;
}

/// One bit for each group whose experts may be chosen.
uint chosen_groups() {
  if (params.groups_used >= params.groups) return 0xffffffffu;
  uint chosen = 0;
  for (uint n = 0; n < params.groups_used; ++n) {
    uint best = 0;
    float most = kNone;
    for (uint group = 0; group < params.groups; ++group) {
      if ((chosen & (1u << group)) != 0) continue;
      const float value = group_value(group);
      if (value > most) {
        most = value;
        best = group;
      }
    }
    chosen |= 1u << best;
  }
  return chosen;
}

void route(uint token) {
  first = token * params.experts;
  maximum = kNone;
  total = 0.0;
  for (uint e = 0; e < params.experts; ++e) maximum = max(maximum, AT(logits, first + e));
  for (uint e = 0; e < params.experts; ++e) total += exp(AT(logits, first + e) - maximum);
  const uint each = params.experts / params.groups, chosen = chosen_groups();
  const uint route_first = token * params.experts_per_token * 2;
  float before = -kNone, sum = 0.0;
  uint before_expert = 0;
  for (uint slot = 0; slot < params.experts_per_token; ++slot) {
    float most = kNone;
    uint best = 0;
    for (uint e = 0; e < params.experts; ++e) {
      if ((chosen & (1u << (e / each))) == 0) continue;
      const float choice = choice_of(e);
      const bool later = choice < before || (choice == before && e > before_expert);
      if (later && choice > most) {
        most = choice;
        best = e;
      }
    }
    before = most;
    before_expert = best;
    const float gate = max(score_of(best), 1e-30);
    sum += gate;
    AT(routes, route_first + slot * 2) = floatBitsToUint(gate);
    AT(routes, route_first + slot * 2 + 1) = best;
  }
  const float factor = params.scale / (NORMALIZE == 1 ? sum : 1.0);
  for (uint slot = 0; slot < params.experts_per_token; ++slot) {
    const float gate = uintBitsToFloat(AT(routes, route_first + slot * 2));
    AT(routes, route_first + slot * 2) = floatBitsToUint(log(gate * factor));
  }
}

void main() {
  const uint stride = gl_NumWorkGroups.x * LOCAL_SIZE;
  for (uint token = gl_GlobalInvocationID.x; token < params.tokens; token += stride) route(token);
}
