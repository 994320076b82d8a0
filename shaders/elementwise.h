// Parameters of pointwise operations: y = activation(a [+ b]), storage types converted on the way,
// or y = value, or y = a scaled and capped or clipped, or y = a times sigmoid(b) or scales row by
// row, or y = activation(a[2 i]) * a[2 i + 1].
#ifndef MULCIBER_SHADERS_ELEMENTWISE_H
#define MULCIBER_SHADERS_ELEMENTWISE_H

#ifdef __cplusplus
#include "shaders/include/interface.h"
#endif

SHADER_STRUCT(ElementwiseParams) {
  uint count;    // elements
  uint stride;   // invocations of the dispatch, each taking every stride-th group of four elements
  float value;   // ELEMENTWISE_FILL: every element's value; ELEMENTWISE_SCALE: the factor
  float cap;     // with SCALE_AND_CAP
  uint columns;  // columns of a, with OPERAND_GATES and OPERAND_SCALES
  // With OPERAND_SCALES: tokens of each row of the batch; word of b with the first row's first
  // scale, words from one row's scales to the next's, and number of interleaved scales.
  uint tokens;
  uint scales;
  uint scales_per_row;
  uint scale_count;
}
SHADER_STRUCT_END

#define ELEMENTWISE_OPERAND CONSTANT_OP           // OPERAND_*: the content of buffer 1
#define ELEMENTWISE_ACTIVATION (CONSTANT_OP + 1)  // a value of mulciber::Activation
#define ELEMENTWISE_FILL (CONSTANT_OP + 2)        // 1: nothing is read
#define ELEMENTWISE_SCALE (CONSTANT_OP + 3)       // SCALE_*
#define OPERAND_NONE 0
#define OPERAND_ADDED 1
#define OPERAND_GATES 2   // a number for each row of a, which is multiplied by its sigmoid
#define OPERAND_SCALES 3  // 32-bit scales for each row of the batch, interleaved over columns
#define OPERAND_PAIRS 4   // nothing: a has interleaved gates and values
#define SCALE_NOT 0
#define SCALE_ONLY 1     // y = value * a
#define SCALE_AND_CAP 2  // y = cap * tanh(value * a / cap)
#define SCALE_CLIP 3     // y = a clamped to +-value; with OPERAND_PAIRS their limit

#endif
