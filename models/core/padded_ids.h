// Token ids of several sequences as a padded array, and helpers to crop and select outputs.
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
  std::vector<uint32_t> lengths;  // (rows): real ids of each row; padding is masked
};

/// Pads sequences on the right with `pad`.
PaddedIds pad_ids(std::span<const std::vector<uint32_t>> sequences, uint32_t pad);

/// Returns input `name`. family: for messages. Throws ModelError when it is missing or does not
/// have two dimensions.
const NamedArray& matrix_input(const std::string& family, const NamedArrays& inputs,
                               const char* name);
/// Reads input `name` as ids, without padding. Throws ModelError unless ids are below `vocabulary`
/// and rows have 1 to max_length positions.
PaddedIds read_padded_ids(const std::string& family, const NamedArrays& inputs, const char* name,
                          uint32_t vocabulary, uint32_t max_length);

/// Shortens rows by input `attention_mask`, if there is one. Throws ModelError when it masks a
/// token before an unmasked one.
void apply_right_padding(const std::string& family, PaddedIds& ids, const NamedArrays& inputs);

/// Crops `values` from shape `from` to shape `to`, keeping the first elements of each dimension.
std::vector<double> crop(std::span<const float> values, std::span<const uint64_t> from,
                         std::span<const uint64_t> to);

/// Whether a wanted name contains `part`.
bool wants(std::span<const std::string> wanted, std::string_view part);
/// Removes results that are not wanted.
void keep_wanted(NamedArrays& results, std::span<const std::string> wanted);

}  // namespace mulciber
