// Lets one header serve GLSL and C++: parameter structs are plain structs of 32-bit scalars, and
// constant ids are macros, so both languages read the same text.
#ifndef MULCIBER_INTERFACE_H
#define MULCIBER_INTERFACE_H

#ifdef __cplusplus
#include <cstdint>

#include "shaders/row_constants.h"
namespace mulciber::shader {
using uint = uint32_t;
}
#define SHADER_STRUCT(NAME)    \
  namespace mulciber::shader { \
  struct NAME
#define SHADER_STRUCT_END \
  ;                       \
  }
#else
#include "row_constants.h"
#define SHADER_STRUCT(NAME) struct NAME
#define SHADER_STRUCT_END ;
#endif

// Ids of specialization constants. 0 and 1 are set by the runtime for every kernel; ids from 16 on
// belong to the op and are set per node; ids from 64 on belong to a row: row_constants.h has their
// names, CONSTANTS(...) of kernels.def their values.
#define CONSTANT_LOCAL_SIZE 0     // invocations per workgroup
#define CONSTANT_SUBGROUP_SIZE 1  // the device's subgroup size
#define CONSTANT_OP 16            // first id of the op

#endif
