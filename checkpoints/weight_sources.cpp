#include "checkpoints/weight_sources.h"

#include <bit>
#include <cmath>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "checkpoints/tensor_values.h"
#include "mulciber/error.h"

namespace mulciber {
namespace {

bool same_shape(std::span<const uint64_t> found, const Shape& wanted) {
  if (found.size() != wanted.rank()) return false;
  for (size_t i = 0; i < found.size(); ++i)
    if (found[i] != wanted[static_cast<int>(i)]) return false;
  return true;
}

Shape shape_in_file(const WeightSource& source) {
  const Shape& shape = source.shape;
  if (source.rows_in_file > 0)
    return shape.rank() == 1 ? Shape{source.rows_in_file}
                             : Shape{source.rows_in_file, shape.columns()};
  if (source.form != SourceForm::kTransposed) return shape;
  return shape.rank() == 3 ? Shape{shape[0], shape[2], shape[1]}
                           : Shape{shape.columns(), shape.rows()};
}

constexpr uint64_t kMxBlock = 32;

std::optional<Found> find_mxfp4(const WeightSource& source, const Checkpoint& checkpoint,
                                const std::string& family) {
  const Shape& shape = source.shape;
  for (const std::string& name : source.names) {
    const CheckpointTensor* numbers = checkpoint.find(name + "_blocks");
    const CheckpointTensor* exponents = checkpoint.find(name + "_scales");
    if (!numbers || !exponents || shape.rank() != 3) continue;
    const uint64_t blocks = shape[2] / kMxBlock;
    if (shape[2] % kMxBlock != 0 || numbers->type != CheckpointType::kU8 ||
        exponents->type != CheckpointType::kU8 ||
        !same_shape(numbers->shape, {shape[0], shape[1], blocks, kMxBlock / 2}) ||
        !same_shape(exponents->shape, {shape[0], shape[1], blocks})) {
      throw ModelError(
          fmt::format("{} weight `{}_blocks`", family, name),
          fmt::format("and `{}_scales` have shapes {} and {}, config says {}", name,
                      numbers->shape_text(), exponents->shape_text(), shape.to_string()),
          "the file and config.json disagree: download both from one revision");
    }
    return Found{numbers, exponents};
  }
  return std::nullopt;
}

Found find_source(const WeightSource& source, const Checkpoint& checkpoint,
                  const std::string& family) {
  for (const std::string& name : source.names) {
    const CheckpointTensor* tensor = checkpoint.find(name);
    if (!tensor) continue;
    const std::string where = fmt::format("{} weight `{}`", family, name);
    const Shape in_file = shape_in_file(source);
    if (!same_shape(tensor->shape, in_file)) {
      throw ModelError(
          where,
          fmt::format("has shape {}, config says {}", tensor->shape_text(), in_file.to_string()),
          "the file and config.json disagree: download both from one revision");
    }
    if (!has_float_values(tensor->type)) {
      throw ModelError(where, fmt::format("is stored as {}", name_of(tensor->type)),
                       kReadableTypes);
    }
    return {tensor};
  }
  if (const std::optional<Found> found = find_mxfp4(source, checkpoint, family)) return *found;
  throw ModelError(fmt::format("{} weight `{}`", family, source.names.front()),
                   fmt::format("is missing from {}", checkpoint.path().string()),
                   source.names.size() > 1
                       ? fmt::format("none of its other names is there either: {}",
                                     fmt::join(source.names.begin() + 1, source.names.end(), ", "))
                       : "the file and config.json disagree: download both from one revision");
}

/// The column order in which all sources have blocks; null: there is none.
const std::vector<uint32_t>* common_order(const WeightSpec& spec, std::span<const Found> sources) {
  const auto order = [](const Found& found) {
    const bool sorted = found.tensor && found.tensor->sorted;
    return sorted ? &found.tensor->sorted->order : nullptr;
  };
  if (!spec.any_column_order || sources.empty()) return nullptr;
  for (size_t i = 0; i < sources.size(); ++i) {
    const bool as_in_file = spec.sources[i].form == SourceForm::kAsInFile;
    if (!as_in_file || !spec.sources[i].row_scales.empty() || !order(sources[i]) ||
        *order(sources[i]) != *order(sources.front()))
      return nullptr;
  }
  return order(sources.front());
}

/// The type in which one source is stored on the device.
DataType storage_type(const WeightSpec& spec, const WeightSource& source, const Found& found,
                      MatrixStorage storage) {
  if (spec.role == WeightRole::kVector) return DataType::kF32;
  if (storage == MatrixStorage::kF16) return DataType::kF16;
  if (found.exponents) return DataType::kMXFP4;
  const DataType type = device_type(found.tensor->type).value_or(DataType::kF32);
  if (source.form == SourceForm::kPlusOne || !source.row_scales.empty()) return DataType::kF32;
  // Blocks can stay only where rows of the file's blocks are rows of the weight; otherwise they
  // become plain numbers.
  const bool whole =
      source.form == SourceForm::kAsInFile && source.shape.columns() % block_elements(type) == 0;
  if (!is_block_type(type) || whole) return type;
  return spec.role == WeightRole::kExperts ? DataType::kF16 : DataType::kF32;
}

/// One type for values of all these types. None: each source may keep its own type, in a segment.
std::optional<DataType> common_type(const WeightSpec& spec, std::span<const DataType> types) {
  if (std::ranges::all_of(types, [&](DataType type) { return type == types.front(); }))
    return types.front();
  if (spec.role == WeightRole::kExperts)
    return std::ranges::any_of(types, is_block_type) ? DataType::kF16 : DataType::kF32;
  return spec.interleaved > 1 ? std::optional(DataType::kF32) : std::nullopt;
}

/// Divides sources into segments, each of neighbouring sources of one type.
void divide(const WeightSpec& spec, std::span<const DataType> types, Resolved& result) {
  if (const std::optional<DataType> type = common_type(spec, types)) {
    result.segments.push_back({*type, spec.shape});
    result.ranges.push_back({0, types.size()});
    return;
  }
  for (size_t first = 0; first < types.size();) {
    size_t end = first;
    uint64_t rows = 0;
    for (; end < types.size() && types[end] == types[first]; ++end) {
      rows += spec.sources[end].shape.elements() / spec.shape.columns();
    }
    result.segments.push_back({types[first], {rows, spec.shape.columns()}});
    result.ranges.push_back({first, end - first});
    first = end;
  }
}

/// Converts a float that bf16 represents exactly.
uint16_t upper_half(float value) {
  return static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
}

}  // namespace

Resolved resolve(const WeightSpec& spec, const Checkpoint& checkpoint, const std::string& family,
                 MatrixStorage storage) {
  Resolved result;
  uint64_t elements = 0;
  for (size_t i = 0; i < spec.sources.size(); ++i) {
    const WeightSource& source = spec.sources[i];
    const bool constant = source.form == SourceForm::kZeros || source.form == SourceForm::kOnes;
    result.sources.push_back(constant ? Found() : find_source(source, checkpoint, family));
    result.scales.push_back(
        source.row_scales.empty()
            ? nullptr
            : find_source({source.row_scales, {source.shape[0]}}, checkpoint, family).tensor);
    elements += source.shape.elements();
    if (!(source.shape == spec.sources[i - i % spec.interleaved].shape))
      throw ShapeError(spec.name, "interleaved sources differ in shape", "");
  }
  if (elements != spec.shape.elements()) {
    throw ShapeError(spec.name,
                     fmt::format("{} elements in the sources, {} in {}", elements,
                                 spec.shape.elements(), spec.shape.to_string()),
                     "");
  }
  if (storage == MatrixStorage::kAsInFile) result.column_order = common_order(spec, result.sources);
  std::vector<DataType> types;
  for (size_t i = 0; i < result.sources.size(); ++i) {
    Found& found = result.sources[i];
    if (result.column_order) found.tensor = &found.tensor->sorted->matrix;
    types.push_back(found.tensor ? storage_type(spec, spec.sources[i], found, storage)
                                 : DataType::kF32);
  }
  divide(spec, types, result);
  if (result.column_order) {
    result.segments.push_back({DataType::kU32, {spec.shape.columns()}});
    result.ranges.push_back({types.size(), 0});
  }
  return result;
}

std::vector<float> Converted::floats(uint64_t first, uint64_t count) const {
  if (form == SourceForm::kOnes) return std::vector<float>(count, 1.0f);
  if (exponents)
    return floats_of(CheckpointType::kMXFP4, mxfp4_blocks(skipped + first, count), count);
  if (form != SourceForm::kTransposed) {
    std::vector<float> values = read_floats(*tensor, skipped + first, count);
    if (form == SourceForm::kPlusOne) {
      for (float& value : values) value += 1;
    }
    if (form == SourceForm::kMinusExp) {
      for (float& value : values) value = -std::exp(value);
    }
    if (form == SourceForm::kTapByTap) {
      const std::vector<float> in_file = values;
      const uint64_t channels = columns / taps;
      for (uint64_t i = 0; i < count; ++i) {
        const uint64_t column = i % columns, channel = column / taps, tap = column % taps;
        values[i - column + tap * channels + channel] = in_file[i];
      }
    }
    const uint64_t per_scale = scales.empty() ? 1 : rows * columns / scales.size();
    for (uint64_t i = 0; i < count && !scales.empty(); ++i)
      values[i] *= scales[(first + i) / per_scale];
    return values;
  }
  std::vector<float> values(count);
  const uint64_t each = rows / matrices, end = (first + count) / columns;
  for (uint64_t row = first / columns; row < end;) {
    const uint64_t matrix = row / each, some = std::min(end, (matrix + 1) * each) - row;
    for (uint64_t column = 0; column < columns; ++column) {
      const std::vector<float> line =
          read_floats(*tensor, (matrix * columns + column) * each + row % each, some);
      for (uint64_t i = 0; i < some; ++i) values[(row + i) * columns + column - first] = line[i];
    }
    row += some;
  }
  return values;
}

std::vector<std::byte> Converted::mxfp4_blocks(uint64_t first, uint64_t count) const {
  constexpr uint64_t kNumbers = kMxBlock / 2;  // bytes of numbers in a block
  std::vector<std::byte> scratch, more, result;
  const auto numbers = tensor->read(first / 2, count / 2, scratch);
  const auto powers = exponents->read(first / kMxBlock, count / kMxBlock, more);
  result.reserve(count / kMxBlock * (kNumbers + 1));
  for (uint64_t block = 0; block < count / kMxBlock; ++block) {
    const auto number = [&](uint64_t i) {
      return numbers[block * kNumbers + i / 2] >> static_cast<int>(i % 2 * 4) & std::byte{15};
    };
    result.push_back(powers[block]);
    for (uint64_t i = 0; i < kNumbers; ++i) result.push_back(number(i) | number(i + kNumbers) << 4);
  }
  return result;
}

std::vector<std::byte> Converted::bytes(uint64_t first, uint64_t count) const {
  if (is_block_type(type)) {
    std::vector<std::byte> packed(count / columns * row_bytes(type, columns));
    if (exponents) {
      pack_blocks(type, columns, mxfp4_blocks(skipped + first, count), packed);
      return packed;
    }
    const uint64_t block = block_elements(type), block_bytes = gguf_block_bytes(type);
    const uint64_t begin = (skipped + first) / block * block_bytes;
    std::vector<std::byte> scratch;
    pack_blocks(type, columns, tensor->read(begin, count / block * block_bytes, scratch), packed);
    return packed;
  }
  std::vector<std::byte> result(count * size_of(type));
  if (form == SourceForm::kZeros) return result;
  if (as_it_is()) {
    const auto read = tensor->read((skipped + first) * size_of(type), result.size(), result);
    if (read.data() != result.data()) std::memcpy(result.data(), read.data(), read.size());
    return result;
  }
  const std::vector<float> values = floats(first, count);
  if (type == DataType::kF32) {
    std::memcpy(result.data(), values.data(), result.size());
  } else {
    for (uint64_t i = 0; i < count; ++i) {
      const uint16_t half =
          type == DataType::kF16 ? float_to_half(values[i]) : upper_half(values[i]);
      std::memcpy(result.data() + i * sizeof(half), &half, sizeof(half));
    }
  }
  return result;
}

}  // namespace mulciber
