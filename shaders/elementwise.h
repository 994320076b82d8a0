// Parameters of pointwise operations: y = activation(a [+ b]), storage types converted on the way,
// or y = value.
#ifndef MULCIBER_SHADERS_ELEMENTWISE_H
#define MULCIBER_SHADERS_ELEMENTWISE_H

#ifdef __cplusplus
#include "shaders/include/interface.h"
#endif

SHADER_STRUCT(ElementwiseParams) {
  uint count;   // elements
  uint stride;  // invocations of the dispatch, each taking every stride-th group of four elements
  float value;  // with ELEMENTWISE_FILL: of every element
}
SHADER_STRUCT_END

#define ELEMENTWISE_ADD CONSTANT_OP               // 1: add buffer 1
#define ELEMENTWISE_ACTIVATION (CONSTANT_OP + 1)  // a value of mulciber::Activation
#define ELEMENTWISE_FILL (CONSTANT_OP + 2)        // 1: nothing is read

#endif
