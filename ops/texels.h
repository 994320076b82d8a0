// Numbers as the texels of images.
#pragma once

#include "runtime/program.h"
#include "shaders/texels.h"

namespace mulciber {

/// What a 32-bit word of texels holds, the first in its lowest bits.
enum class TexelFormat : uint32_t {
  kUnorm8 = TEXELS_UNORM8,    // four numbers, 0 to 1 as 0 to 255
  kUnorm16 = TEXELS_UNORM16,  // two, as 0 to 65535
  kGrey8 = TEXELS_GREY8,      // one, as three alike of 8 bits, and 255
};

/// Of a word.
constexpr uint32_t texels_of(TexelFormat format) {
  return format == TexelFormat::kUnorm8 ? 4 : format == TexelFormat::kUnorm16 ? 2 : 1;
}

/// x: any shape, f32; what lies beyond 0 and 1 is cut, and a half is rounded up. Result: (words),
/// u32, of which the last is filled up with zeros. Throws ShapeError naming the layer.
Tensor pack_texels(ProgramBuilder& builder, const Tensor& x, TexelFormat format);

}  // namespace mulciber
