// Convolves each channel of a sequence with its own taps, over a token and earlier ones, the last
// of which are kept in the row's state between passes; then applies SiLU. One channel of one row
// per invocation, which loops over the tokens.
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

layout(constant_id = STATE_SPACE_TAPS) const uint TAPS = 4;

void main() {
  const uint channel = gl_GlobalInvocationID.x;
  const uint row = gl_WorkGroupID.y;
  if (channel >= params.channels) return;
  const uint count = min(AT(control, params.counts + row), params.tokens);
  const bool begins = AT(control, params.positions + row) == 0u;
  const uint state_at = row * params.state_columns + channel;

  // The newest input is last. Inputs from the state move on with the first token.
  float taps[TAPS], window[TAPS];
  [[unroll]] for (uint i = 0u; i < TAPS; ++i) {
    taps[i] = AT(weights, channel * TAPS + i);
    window[i] = 0.0;
    if (i > 0u && !begins) window[i] = AT(state, state_at + (i - 1u) * params.channels);
  }
  const float bias = AT(weights, params.channels * TAPS + channel);
  for (uint t = 0u; t < params.tokens; ++t) {
    const uint token = row * params.tokens + t;
    float result = 0.0;
    if (t < count) {
      [[unroll]] for (uint i = 0u; i + 1u < TAPS; ++i) window[i] = window[i + 1u];
      window[TAPS - 1u] = AT(work, token * 2u * params.channels + channel);
      float sum = bias;
      [[unroll]] for (uint i = 0u; i < TAPS; ++i) sum += taps[i] * window[i];
      result = activate(sum, ACTIVATION_SILU);
    }
    AT(work, params.convolved + token * params.channels + channel) = result;
  }
  if (count == 0u) return;
  [[unroll]] for (uint i = 1u; i < TAPS; ++i) AT(state, state_at + (i - 1u) * params.channels) =
      window[i];
}
