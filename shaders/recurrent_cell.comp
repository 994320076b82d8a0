// One time step of a recurrent cell: computes the new state and the output of a position from the
// gates' pre-activations, which are the products of input and state with their matrices. One unit
// of one row per invocation.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "interface.h"
#include "recurrent.h"
#define BUFFER_COUNT 4
#include "buffers.glsl"
#include "activation.glsl"

PARAMS(RecurrentParams)
BUFFER(0, readonly, gates, float)
BUFFER(1, , state, float)
BUFFER(2, writeonly, outputs, float)
BUFFER(3, readonly, control, uint)

layout(constant_id = RECURRENT_CELL) const uint CELL = CELL_LSTM;
layout(constant_id = RECURRENT_REVERSE) const uint REVERSE = 0;

const uint GATES = CELL == CELL_LSTM ? 4u : CELL == CELL_GRU ? 3u : 1u;

float sigmoid(float x) { return 1.0 / (1.0 + exp(min(-x, 80.0))); }  // exp(80) is finite

void main() {
  const uint unit = gl_GlobalInvocationID.x;
  const uint row = gl_WorkGroupID.y;
  if (unit >= params.hidden) return;

  const uint count = params.lengths < 0
                         ? params.positions
                         : min(AT(control, uint(params.lengths) + row), params.positions);
  const uint output_row = row * params.positions;
  if (params.time >= count) {
    // Past the end of a shorter row the state stays, and the position is padding.
    AT(outputs, (output_row + params.time) * params.columns + params.first_column + unit) = 0.0;
    return;
  }
  const uint position = REVERSE != 0u ? count - 1u - params.time : params.time;
  const uint input_at =
      params.inputs_first + (output_row + position) * GATES * params.hidden + unit;
  const uint recurrent_at = row * GATES * params.hidden + unit;
#define INPUT(GATE) AT(gates, input_at + (GATE)*params.hidden)
#define RECURRENT(GATE) AT(gates, recurrent_at + (GATE)*params.hidden)
#define BOTH(GATE) (INPUT(GATE) + RECURRENT(GATE))

  const uint state_at = row * params.hidden + unit;
  float h;
  if (CELL == CELL_LSTM) {  // gate order input, forget, cell, output
    const float c = sigmoid(BOTH(1)) * AT(state, params.cell_first + state_at) +
                    sigmoid(BOTH(0)) * safe_tanh(BOTH(2));
    AT(state, params.cell_first + state_at) = c;
    h = sigmoid(BOTH(3)) * safe_tanh(c);
  } else if (CELL == CELL_GRU) {  // reset, update, new
    const float z = sigmoid(BOTH(1));
    const float n = safe_tanh(INPUT(2) + sigmoid(BOTH(0)) * RECURRENT(2));
    h = (1.0 - z) * n + z * AT(state, state_at);
  } else {
    h = safe_tanh(BOTH(0));
  }
  AT(state, state_at) = h;
  AT(outputs, (output_row + position) * params.columns + params.first_column + unit) = h;
}
