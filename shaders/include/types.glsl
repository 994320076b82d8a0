// Storage types of a kernel: the row of kernels.def says ACTIVATION and WEIGHT (F32 or F16), the code
// says activation and weight. Arithmetic is always 32-bit float.
#ifndef MULCIBER_TYPES_GLSL
#define MULCIBER_TYPES_GLSL

#if defined(ACTIVATION_F16) || defined(WEIGHT_SCALAR_F16)
#extension GL_EXT_shader_16bit_storage : require
#endif

#ifdef ACTIVATION_F16
#define activation float16_t
#define activation4 f16vec4
#else
#define activation float
#define activation4 vec4
#endif

// f16 operands are read as 32-bit words (two halves each), which needs no 16-bit feature of the device.
vec4 unpack_half4(uvec2 word) { return vec4(unpackHalf2x16(word.x), unpackHalf2x16(word.y)); }

#endif
