// Embeddings that a host has made, of a picture say, in a prompt in place of tokens' own.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace mulciber {

/// Tokens of a prompt from `first` on have these, (count, D).
struct GivenRows {
  uint32_t first = 0;
  std::span<const float> values;
};

/// What a pass over a part of a prompt reads: the rows among its tokens, and of each token the row
/// of BatchTensors::given that it takes.
struct GivenPart {
  std::vector<float> values;
  std::vector<uint32_t> numbers;
};

/// Of tokens [first, first + fed) in a pass over `length`. width: D; own: BatchLayout::own_rows();
/// scale: onto the rows. Without values where none is among them.
GivenPart given_part(std::span<const GivenRows> rows, uint64_t width, uint32_t first, uint32_t fed,
                     uint32_t length, uint32_t own, float scale);

}  // namespace mulciber
