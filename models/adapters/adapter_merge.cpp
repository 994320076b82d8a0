#include "models/adapters/adapter_merge.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "base/half.h"
#include "mulciber/error.h"

namespace mulciber {
namespace {

float number(DataType type, const std::byte* at) {
  if (type == DataType::kF32) {
    float value = 0;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  uint16_t half = 0;
  std::memcpy(&half, at, sizeof half);
  return type == DataType::kF16 ? half_to_float(half) : bf16_to_float(half);
}

void store(DataType type, float value, std::byte* at) {
  if (type == DataType::kF32) {
    std::memcpy(at, &value, sizeof value);
    return;
  }
  const uint16_t half = type == DataType::kF16 ? float_to_half(value) : float_to_bf16(value);
  std::memcpy(at, &half, sizeof half);
}

}  // namespace

void AdapterMerge::begin(const std::string& name, std::span<const WeightSegment> segments) {
  sum_.reset();
  if (adapters_ && adapters_->changes(name)) {
    for (const WeightSegment& segment : segments) {
      const bool numbers = segment.type == DataType::kF32 || segment.type == DataType::kF16 ||
                           segment.type == DataType::kBF16;
      if (!numbers)
        throw ModelError(fmt::format("weight `{}`", name),
                         fmt::format("is kept in {}, into which no adapter can be merged",
                                     name_of(segment.type)),
                         "leave adapters beside the weights, or keep matrices in 16 bits");
    }
    segments_.assign(segments.begin(), segments.end());
    sum_.emplace(*adapters_, name);
  }
  to_.begin(name, segments);
}

void AdapterMerge::write(size_t segment, uint64_t offset, std::span<const std::byte> bytes) {
  if (!sum_) {
    to_.write(segment, offset, bytes);
    return;
  }
  uint64_t above = 0;  // rows of the previous segments
  for (size_t i = 0; i < segment; ++i) above += segments_[i].shape.rows();
  const DataType type = segments_[segment].type;
  const uint64_t size = size_of(type), columns = sum_->columns();
  std::vector<std::byte> merged(bytes.begin(), bytes.end());
  std::vector<double> values;
  const uint64_t first = offset / size, end = first + bytes.size() / size;
  for (uint64_t at = first; at < end;) {
    const uint64_t column = at % columns, count = std::min(columns - column, end - at);
    std::byte* to = merged.data() + (at - first) * size;
    values.resize(count);
    for (uint64_t i = 0; i < count; ++i) values[i] = number(type, to + i * size);
    sum_->add_to(above + at / columns, column, values);
    for (uint64_t i = 0; i < count; ++i) store(type, static_cast<float>(values[i]), to + i * size);
    at += count;
  }
  to_.write(segment, offset, merged);
}

}  // namespace mulciber
