// Token ids of several sequences as an array, and arrays cut to what was asked for.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/core/model.h"

namespace mulciber {

/// Sequences of unequal lengths, padded to a rectangle.
struct PaddedIds {
  uint32_t rows = 0, length = 0;
  std::vector<uint32_t> ids;      // (rows, length)
  std::vector<uint32_t> lengths;  // (rows): real ids of each row; those behind are not attended to
};

/// Sequences padded on the right with `pad`.
PaddedIds pad_ids(std::span<const std::vector<uint32_t>> sequences, uint32_t pad);

/// Input `name`, which must be there and have two dimensions. family: for messages. Throws
/// ModelError.
const NamedArray& matrix_input(const std::string& family, const NamedArrays& inputs,
                               const char* name);
/// Input `name` as ids below `vocabulary`, in 1 to max_length positions; every row whole. Throws
/// ModelError.
PaddedIds read_padded_ids(const std::string& family, const NamedArrays& inputs, const char* name,
                          uint32_t vocabulary, uint32_t max_length);

/// Cuts the rows to what input `attention_mask` says, where there is one. Throws ModelError where
/// it masks a token in front of another one.
void apply_right_padding(const std::string& family, PaddedIds& ids, const NamedArrays& inputs);

/// The leading corner of `values`, an array of extents `from`, with extents `to`.
std::vector<double> crop(std::span<const float> values, std::span<const uint64_t> from,
                         std::span<const uint64_t> to);

/// Whether a name that holds `part` is wanted.
bool wants(std::span<const std::string> wanted, std::string_view part);
/// Takes away what is not wanted.
void keep_wanted(NamedArrays& results, std::span<const std::string> wanted);

}  // namespace mulciber
