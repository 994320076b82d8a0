// Buffers of a kernel, as descriptors or as device addresses.
//
// A kernel declares its parameters and buffers once:
//
//   #define BUFFER_COUNT 4
//   #include "buffers.glsl"
//   PARAMS(MatmulParams)            the struct from the family's .h; read as `params.x`
//   BUFFER(0, readonly, x, vec4)    buffer 0, seen as an array of vec4; read as AT(x, i)
//
// With BUFFER_ADDRESS defined (by a row of kernels.def) the addresses precede the parameters in the
// push constants; without it each buffer is a storage-buffer descriptor of set 0. One index may be
// declared under several names and types. Addresses are 16-byte aligned.
//
//   TEXELS(1, w)                    buffer 1 as a uniform texel buffer: TEXEL(w, i) is its i-th
//   uvec4
//
// needs kTexelLoads, and is a descriptor even if other buffers are addresses. An index is either a
// texel buffer or a storage buffer. Software drivers load 16 bytes per lane this way in an eighth
// of the instructions that a storage buffer takes.
#ifndef MULCIBER_BUFFERS_GLSL
#define MULCIBER_BUFFERS_GLSL

#extension GL_EXT_control_flow_attributes : enable

#ifdef BUFFER_ADDRESS
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference_uvec2 : require
#define PARAMS(STRUCT)                         \
  layout(push_constant, std430) uniform Push { \
    uvec2 address[BUFFER_COUNT];               \
    STRUCT params_;                            \
  }                                            \
  push_;
#define BUFFER(INDEX, ACCESS, NAME, TYPE)                                                    \
  layout(buffer_reference, std430, buffer_reference_align = 16) ACCESS buffer NAME##_block { \
    TYPE data[];                                                                             \
  };                                                                                         \
  const uint NAME##_index = INDEX;
#define AT(NAME, I) NAME##_block(push_.address[NAME##_index]).data[I]
#else
#define PARAMS(STRUCT)                                           \
  layout(push_constant, std430) uniform Push { STRUCT params_; } \
  push_;
#define BUFFER(INDEX, ACCESS, NAME, TYPE)                                              \
  layout(set = 0, binding = INDEX, std430) ACCESS buffer NAME##_block { TYPE data[]; } \
  NAME##_buffer;
#define AT(NAME, I) NAME##_buffer.data[I]
#endif
#define TEXELS(INDEX, NAME) layout(set = 0, binding = INDEX) uniform usamplerBuffer NAME##_texels;
#define TEXEL(NAME, I) texelFetch(NAME##_texels, int(I))
#define params push_.params_

layout(local_size_x_id = CONSTANT_LOCAL_SIZE, local_size_y = 1, local_size_z = 1) in;
#define LOCAL_SIZE gl_WorkGroupSize.x
layout(constant_id = CONSTANT_SUBGROUP_SIZE) const uint SUBGROUP_SIZE = 32;

#endif
