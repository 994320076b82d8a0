// Parameters of the ops of a selective state-space layer.
#ifndef MULCIBER_SHADERS_STATE_SPACE_H
#define MULCIBER_SHADERS_STATE_SPACE_H

#ifdef __cplusplus
#include "shaders/include/interface.h"
#endif

// Buffers: 0 work, 1 weights, 2 state, 3 control. Offsets and strides count elements.
//
// Work: for each token of each row the convolution's input and the gates (2 channels), side by
// side; then for all tokens the convolution's result (channels), from `convolved` on; the time
// steps (channels), from `steps` on; and B and C (2 states), from `pairs` on.
// State: for each row the last inputs of the convolution, (TAPS - 1, channels), oldest first, then
// the states of the scan, (STATES, channels).
SHADER_STRUCT(StateSpaceParams) {
  uint channels;
  uint tokens;         // tokens of a row
  uint convolved;      // element of work
  uint steps;          // element of work
  uint pairs;          // element of work
  uint state_columns;  // columns of a row of the state
  uint scanned;        // column of the state where the states of the scan begin
  uint positions;      // word of control: earlier tokens of each row; 0: its state is all zeros
  uint counts;         // word of control: tokens of a row that count; later ones are padding
}
SHADER_STRUCT_END

#define STATE_SPACE_TAPS CONSTANT_OP
#define STATE_SPACE_STATES (CONSTANT_OP + 1)

#endif
