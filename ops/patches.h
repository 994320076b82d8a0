// Patches of pictures, as rows that a product takes.
#pragma once

#include <array>

#include "runtime/program.h"

namespace mulciber {

struct PatchOptions {
  uint32_t size = 16;      // pixels of a patch's side; it divides those of the picture
  uint32_t channels = 3;   // of a pixel, 1 to 4
  uint32_t zero_rows = 0;  // rows of zeros before the patches of every picture
  /// A channel's value times its scale, plus its shift.
  std::array<float, 4> scale = {1, 1, 1, 1}, shift = {};
  DataType result = DataType::kF32;  // or f16
};

/// The first half of a convolution whose stride is its size, which a product ends (im2col): the
/// patches of pictures, normalized, a row each. pixels: (pictures, channels, height, width) f32, or
/// (pictures, height, width) u32, of each pixel a word whose lowest byte is channel 0. Result:
/// (pictures, zero_rows + patches, channels * size * size), patches line by line of the picture,
/// and in each channel by channel and line by line. Throws ShapeError naming the layer.
/// Source: Dosovitskiy et al. 2021, arXiv:2010.11929, section 3.1.
Tensor unfold_patches(ProgramBuilder& builder, const Tensor& pixels, const PatchOptions& options);

}  // namespace mulciber
