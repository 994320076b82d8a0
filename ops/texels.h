// Conversion of numbers to the texels of images.
#pragma once

#include "runtime/program.h"
#include "shaders/texels.h"

namespace mulciber {

/// The content of a 32-bit word of texels, the first number in its lowest bits.
enum class TexelFormat : uint32_t {
  kUnorm8 = TEXELS_UNORM8,    // four numbers, 0 to 1 as 0 to 255
  kUnorm16 = TEXELS_UNORM16,  // two numbers, 0 to 1 as 0 to 65535
  kGrey8 = TEXELS_GREY8,      // one number, as three equal bytes, and 255
};

/// Numbers in a word.
constexpr uint32_t texels_of(TexelFormat format) {
  return format == TexelFormat::kUnorm8 ? 4 : format == TexelFormat::kUnorm16 ? 2 : 1;
}

/// Packs numbers into texels. x: any shape, f32; numbers are clamped to 0 and 1, and a half is
/// rounded up. Result: (words), u32, the last one filled up with zeros. Throws ShapeError naming
/// the layer.
Tensor pack_texels(ProgramBuilder& builder, const Tensor& x, TexelFormat format);

}  // namespace mulciber
