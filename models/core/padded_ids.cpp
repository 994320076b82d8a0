#include "models/core/padded_ids.h"

#include <algorithm>

#include <fmt/format.h>

#include "mulciber/error.h"

namespace mulciber {
namespace {

std::string where_of(const std::string& family, const char* name) {
  return fmt::format("{} input `{}`", family, name);
}

}  // namespace

const NamedArray& matrix_input(const std::string& family, const NamedArrays& inputs,
                               const char* name) {
  const auto found = inputs.find(name);
  if (found == inputs.end()) throw ModelError(where_of(family, name), "is missing", "");
  if (found->second.shape.size() != 2)
    throw ModelError(where_of(family, name),
                     fmt::format("has {} dimensions, 2 are expected", found->second.shape.size()),
                     "");
  return found->second;
}

PaddedIds read_padded_ids(const std::string& family, const NamedArrays& inputs, const char* name,
                          uint32_t vocabulary, uint32_t max_length) {
  const NamedArray& array = matrix_input(family, inputs, name);
  const std::string where = where_of(family, name);
  if (array.shape[0] < 1 || array.shape[1] < 1 || array.shape[1] > max_length)
    throw ModelError(where,
                     fmt::format("has shape ({}, {}), the model takes 1 to {} positions",
                                 array.shape[0], array.shape[1], max_length),
                     "");
  PaddedIds ids = {.rows = static_cast<uint32_t>(array.shape[0]),
                   .length = static_cast<uint32_t>(array.shape[1])};
  for (double value : array.values) {
    if (!(value >= 0 && value < vocabulary))
      throw ModelError(where, fmt::format("holds id {}, ids are below {}", value, vocabulary), "");
    ids.ids.push_back(static_cast<uint32_t>(value));
  }
  ids.lengths.assign(ids.rows, ids.length);
  return ids;
}

void apply_right_padding(const std::string& family, PaddedIds& ids, const NamedArrays& inputs) {
  if (inputs.count("attention_mask") == 0) return;
  const NamedArray& mask = matrix_input(family, inputs, "attention_mask");
  if (mask.shape != std::vector<uint64_t>{ids.rows, ids.length})
    throw ModelError(family + " input `attention_mask`", "does not have the shape of input_ids",
                     "");
  for (uint32_t row = 0; row < ids.rows; ++row) {
    const auto first = mask.values.begin() + row * ids.length, last = first + ids.length;
    const auto padding = std::find(first, last, 0.0);
    if (std::any_of(padding, last, [](double value) { return value != 0; }))
      throw ModelError(family + " input `attention_mask`",
                       fmt::format("row {} masks a token in front of another one", row),
                       "pad on the right");
    ids.lengths[row] = static_cast<uint32_t>(padding - first);
  }
}

PaddedIds pad_ids(std::span<const std::vector<uint32_t>> sequences, uint32_t pad) {
  PaddedIds padded = {.rows = static_cast<uint32_t>(sequences.size())};
  for (const std::vector<uint32_t>& ids : sequences) {
    padded.lengths.push_back(static_cast<uint32_t>(ids.size()));
    padded.length = std::max(padded.length, padded.lengths.back());
  }
  for (const std::vector<uint32_t>& ids : sequences) {
    padded.ids.insert(padded.ids.end(), ids.begin(), ids.end());
    padded.ids.insert(padded.ids.end(), padded.length - ids.size(), pad);
  }
  return padded;
}

std::vector<double> crop(std::span<const float> values, std::span<const uint64_t> from,
                         std::span<const uint64_t> to) {
  if (from.empty()) return {values[0]};
  uint64_t stride = 1;
  for (uint64_t extent : from.subspan(1)) stride *= extent;
  std::vector<double> result;
  for (uint64_t i = 0; i < to[0]; ++i) {
    if (from.size() == 1) {
      result.push_back(values[i]);
      continue;
    }
    const std::vector<double> part =
        crop(values.subspan(i * stride, stride), from.subspan(1), to.subspan(1));
    result.insert(result.end(), part.begin(), part.end());
  }
  return result;
}

bool wants(std::span<const std::string> wanted, std::string_view part) {
  return std::any_of(wanted.begin(), wanted.end(),
                     [&](const std::string& name) { return name.find(part) != std::string::npos; });
}

void keep_wanted(NamedArrays& results, std::span<const std::string> wanted) {
  std::erase_if(results, [&](const auto& entry) {
    return std::find(wanted.begin(), wanted.end(), entry.first) == wanted.end();
  });
}

}  // namespace mulciber
