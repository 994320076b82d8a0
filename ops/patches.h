// Patches of images as rows of a matrix.
#pragma once

#include <array>

#include "runtime/program.h"

namespace mulciber {

struct PatchOptions {
  uint32_t size = 16;      // pixels of a patch's side; divides those of the image
  uint32_t channels = 3;   // per pixel, 1 to 4
  uint32_t zero_rows = 0;  // rows of zeros before the patches of every image
  /// A channel's value is multiplied by its scale, then its shift is added.
  std::array<float, 4> scale = {1, 1, 1, 1}, shift = {};
  DataType result = DataType::kF32;  // or f16
};

/// Unfolds images into normalized patches, one row for each: the first half of a convolution whose
/// stride is its size (im2col); a product is the second half. pixels: (images, channels, height,
/// width) f32, or (images, height, width) u32, one word per pixel whose lowest byte is channel 0.
/// Result: (images, zero_rows + patches, channels * size * size): patches in the order of the
/// image's lines, and within a patch channel by channel, line by line. Throws ShapeError naming the
/// layer.
/// Source: Dosovitskiy et al. 2021, arXiv:2010.11929, section 3.1.
Tensor unfold_patches(ProgramBuilder& builder, const Tensor& pixels, const PatchOptions& options);

}  // namespace mulciber
