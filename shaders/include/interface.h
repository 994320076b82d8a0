// Lets one header serve GLSL and C++: parameter structs are plain structs of 32-bit scalars, and
// constant ids are macros, so both languages read the same text.
#ifndef MULCIBER_INTERFACE_H
#define MULCIBER_INTERFACE_H

#ifdef __cplusplus
#include <cstdint>
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
#define SHADER_STRUCT(NAME) struct NAME
#define SHADER_STRUCT_END ;
#endif

// Specialization constant ids. 0 and 1 are set by the runtime for every kernel; 2 to 15 take the
// values of CONSTANTS(...) in kernels.def after the first; 16 and up belong to the op and are set
// per node.
// invocations per workgroup (first of CONSTANTS; 0: one subgroup)
#define CONSTANT_LOCAL_SIZE 0
#define CONSTANT_SUBGROUP_SIZE 1  // the device's subgroup size
#define CONSTANT_ROW 2            // first of the row's own
#define CONSTANT_OP 16            // first of the op's own

#endif
