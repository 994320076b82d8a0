// Parameters of the ops of a selective state-space layer.
#ifndef MULCIBER_SHADERS_STATE_SPACE_H
#define MULCIBER_SHADERS_STATE_SPACE_H

#ifdef __cplusplus
#include "shaders/include/interface.h"
#endif

// Buffers: 0 work, 1 weights, 2 state, 3 control. Offsets and strides count elements.
//
// Work: for each token of each row what is convolved and the gates (2 channels), side by side; then
// of all tokens what comes of the convolution (channels), from `convolved` on; the time steps
// (channels), from `steps` on; and B and C (2 states), from `pairs` on.
// State: of each row the last inputs of the convolution, (TAPS - 1, channels), the oldest first,
// then the states of the scan, (STATES, channels).
SHADER_STRUCT(StateSpaceParams) {
  uint channels;
  uint tokens;         // of a row
  uint convolved;      // of work
  uint steps;          // of work
  uint pairs;          // of work
  uint state_columns;  // of a row of the state
  uint scanned;        // of a row of the state, where the states of the scan begin
  uint positions;      // of control: tokens of each row before these; 0: its state is all zeros
  uint counts;         // of control: how many of a row's tokens count; those behind are padding
}
SHADER_STRUCT_END

#define STATE_SPACE_TAPS CONSTANT_OP
#define STATE_SPACE_STATES (CONSTANT_OP + 1)

#endif
