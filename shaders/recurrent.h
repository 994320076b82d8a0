// Parameters of one time step of a recurrent cell.
#ifndef MULCIBER_SHADERS_RECURRENT_H
#define MULCIBER_SHADERS_RECURRENT_H

#ifdef __cplusplus
#include "shaders/include/interface.h"
#endif

// Buffers: 0 gates, 1 state, 2 outputs, 3 control. Offsets and strides count elements.
SHADER_STRUCT(RecurrentParams) {
  uint hidden;        // units of the cell
  uint positions;     // positions of a row of the inputs and of the outputs
  uint time;          // this step
  uint inputs_first;  // element of gates where those of the inputs begin; the state's begin at 0
  uint cell_first;    // element of state where the cells of an LSTM begin
  uint columns;       // columns of outputs
  uint first_column;  // first column of outputs
  int lengths;        // word of control where the array begins, -1: absent
}
SHADER_STRUCT_END

#define RECURRENT_CELL CONSTANT_OP  // a value of mulciber::CellKind
// 1: from each row's last position to its first
#define RECURRENT_REVERSE (CONSTANT_OP + 1)

#define CELL_TANH 0
#define CELL_GRU 1
#define CELL_LSTM 2

#endif
