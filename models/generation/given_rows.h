// Embeddings from CPU memory in place of those of a prompt's tokens, such as an image's.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace mulciber {

/// Embeddings (count, D) of the prompt's tokens from `first` on.
struct GivenRows {
  uint32_t first = 0;
  std::span<const float> values;
};

/// Inputs of a pass over a part of a prompt: the given embeddings of its tokens, and for each token
/// the row of BatchTensors::given that it takes.
struct GivenPart {
  std::vector<float> values;
  std::vector<uint32_t> numbers;
};

/// The part of tokens [first, first + fed) in a pass over `length`. width: D; own:
/// BatchLayout::own_rows(); scale: by which embeddings are multiplied. Has no values where no token
/// of the part has a given embedding.
GivenPart given_part(std::span<const GivenRows> rows, uint64_t width, uint32_t first, uint32_t fed,
                     uint32_t length, uint32_t own, float scale);

}  // namespace mulciber
