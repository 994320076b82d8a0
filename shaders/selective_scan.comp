// A selective state-space model, whose parameters depend on the token. It computes for each channel
//   h = exp(step A) h + step B u,   y = (C h + D u) silu(gate),   step = softplus(...),
// where all channels share B and C. y overwrites u. One channel of one row per invocation, which
// keeps its states in registers and loops over the tokens.
// Source: Gu and Dao 2023, arXiv:2312.00752, algorithm 2.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "interface.h"
#include "state_space.h"
#define BUFFER_COUNT 4
#include "buffers.glsl"
#include "activation.glsl"

PARAMS(StateSpaceParams)
BUFFER(0, , work, float)
BUFFER(1, readonly, weights, float)
BUFFER(2, , state, float)
BUFFER(3, readonly, control, uint)

layout(constant_id = STATE_SPACE_STATES) const uint STATES = 16;

// log(1 + exp(x)) without loss where exp(x) is small: log(1 + e) = 2 artanh(e / (2 + e)), whose
// series ends here because e / (2 + e) is at most a third.
float softplus(float x) {
  const float e = exp(-abs(x));
  const float s = e / (2.0 + e), s2 = s * s;
  float series = 1.0 / 13.0;
  series = series * s2 + 1.0 / 11.0;
  series = series * s2 + 1.0 / 9.0;
  series = series * s2 + 1.0 / 7.0;
  series = series * s2 + 1.0 / 5.0;
  series = series * s2 + 1.0 / 3.0;
  series = series * s2 + 1.0;
  return max(x, 0.0) + 2.0 * s * series;
}

void main() {
  const uint channel = gl_GlobalInvocationID.x;
  const uint row = gl_WorkGroupID.y;
  if (channel >= params.channels) return;
  const uint count = min(AT(control, params.counts + row), params.tokens);
  const bool begins = AT(control, params.positions + row) == 0u;
  const uint state_at = row * params.state_columns + params.scanned + channel;

  float rates[STATES], h[STATES];
  [[unroll]] for (uint n = 0u; n < STATES; ++n) {
    rates[n] = AT(weights, channel * STATES + n);
    h[n] = 0.0;
    if (!begins) h[n] = AT(state, state_at + n * params.channels);
  }
  const float skip = AT(weights, params.channels * STATES + channel);
  for (uint t = 0u; t < params.tokens; ++t) {
    const uint token = row * params.tokens + t;
    const uint at = params.convolved + token * params.channels + channel;
    float y = 0.0;
    if (t < count) {
      const float u = AT(work, at);
      const float time = softplus(AT(work, params.steps + token * params.channels + channel));
      const float fed = time * u;
      const uint pairs = params.pairs + token * 2u * STATES;
      y = skip * u;
      [[unroll]] for (uint n = 0u; n < STATES; ++n) {
        h[n] = exp(time * rates[n]) * h[n] + fed * AT(work, pairs + n);
        y += h[n] * AT(work, pairs + STATES + n);
      }
      const uint gate = token * 2u * params.channels + params.channels + channel;
      y *= activate(AT(work, gate), ACTIVATION_SILU);
    }
    AT(work, at) = y;
  }
  if (count == 0u) return;
  [[unroll]] for (uint n = 0u; n < STATES; ++n) AT(state, state_at + n * params.channels) = h[n];
}
