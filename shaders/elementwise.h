// Parameters of pointwise operations: y = activation(a [+ b]), storage types converted on the way,
// or y = value, or y = a scaled and capped.
#ifndef MULCIBER_SHADERS_ELEMENTWISE_H
#define MULCIBER_SHADERS_ELEMENTWISE_H

#ifdef __cplusplus
#include "shaders/include/interface.h"
#endif

SHADER_STRUCT(ElementwiseParams) {
  uint count;   // elements
  uint stride;  // invocations of the dispatch, each taking every stride-th group of four elements
  float value;  // with ELEMENTWISE_FILL: of every element; with ELEMENTWISE_SCALE: the factor
  float cap;    // with SCALE_AND_CAP
}
SHADER_STRUCT_END

#define ELEMENTWISE_ADD CONSTANT_OP               // 1: add buffer 1
#define ELEMENTWISE_ACTIVATION (CONSTANT_OP + 1)  // a value of mulciber::Activation
#define ELEMENTWISE_FILL (CONSTANT_OP + 2)        // 1: nothing is read
#define ELEMENTWISE_SCALE (CONSTANT_OP + 3)       // SCALE_*
#define SCALE_NOT 0
#define SCALE_ONLY 1     // y = value * a
#define SCALE_AND_CAP 2  // y = cap * tanh(value * a / cap)

#endif
