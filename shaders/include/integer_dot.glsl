// Dot products of weights in blocks with activations in blocks (q8_1, blocks.h), in integers. With
// INTEGER_DOT the device multiplies four bytes at a time (VK_KHR_shader_integer_dot_product);
// without it shifts give equal results. Include blocks.glsl before.
#ifndef MULCIBER_INTEGER_DOT_GLSL
#define MULCIBER_INTEGER_DOT_GLSL

#ifdef INTEGER_DOT
// OpSDot by number, or with MIXED_DOT OpSUDot of signed and unsigned bytes, and the capabilities
// DotProduct and DotProductInput4x8BitPacked, because Debian 12's glslang lacks
// GL_EXT_integer_dot_product.
#extension GL_EXT_spirv_intrinsics : require
#ifdef MIXED_DOT
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [ 6018, 6019 ],
                  id = 4452)
#else
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [ 6018, 6019 ],
                  id = 4450)
#endif
    int packed_dot(uint x, uint w, spirv_literal int format);

/// Returns sum + the dot product of four bytes of W and four of x.
int dot4(uint w, uint x, int sum) { return sum + packed_dot(x, w, 0); }
#else
int dot4(uint w, uint x, int sum) {
  [[unroll]] for (int shift = 0; shift < 32; shift += 8) {
    sum += bitfieldExtract(int(w), shift, 8) * bitfieldExtract(int(x), shift, 8);
  }
  return sum;
}
#endif

// Integers of W are unsigned. Where both factors must be signed, those with an offset of 128 are
// made signed, which removes the offset; all others are small enough to be either.
bool made_signed(uint format) {
#ifdef MIXED_DOT
  return false;
#else
  return BLOCKS_OFFSET(format) == 128;
#endif
}
uint factors(uint format, uint bytes) { return made_signed(format) ? bytes ^ 0x80808080u : bytes; }

// The remaining offset of W, to be multiplied by x's sum.
int offset_left(uint format) { return made_signed(format) ? 0 : int(BLOCKS_OFFSET(format)); }

// Sums of the integers of a block of x: of its first and second half.
ivec2 half_sums(uint word) { return ivec2(int(word << 16) >> 16, int(word) >> 16); }

// The products of a group of W with a block of x, without x's scale. dots: the products of the
// integers of each half.
float scaled_dots(uint format, GroupScales scales, ivec2 dots, ivec2 sums) {
  if (BLOCKS_HALVES(format)) {
    vec2 products = vec2(dots - offset_left(format) * sums);
    return scales.scale.x * products.x + scales.scale.y * products.y;
  }
  int both = dots.x + dots.y, sum = sums.x + sums.y;
  if (BLOCKS_OFFSET(format) != 0) return scales.scale.x * float(both - offset_left(format) * sum);
  return scales.scale.x * float(both) + scales.minimum.x * float(sum);
}

#endif
