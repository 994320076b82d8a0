#include "checkpoints/weights.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/blocks.h"
#include "checkpoints/mapped_file.h"
#include "checkpoints/tensor_values.h"
#include "mulciber/error.h"

namespace mulciber {
namespace {

// Conversion goes through host memory in pieces of this many elements.
constexpr uint64_t kPieceElements = 256 * 1024;

bool same_shape(std::span<const uint64_t> found, const Shape& wanted) {
  if (found.size() != wanted.rank()) return false;
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i] != wanted[static_cast<int>(i)]) return false;
  }
  return true;
}

Shape shape_in_file(const WeightSource& source) {
  const Shape& shape = source.shape;
  if (source.rows_in_file > 0)
    return shape.rank() == 1 ? Shape{source.rows_in_file}
                             : Shape{source.rows_in_file, shape.columns()};
  return source.form == SourceForm::kTransposed ? Shape{shape.columns(), shape.rows()} : shape;
}

const CheckpointTensor& find_source(const WeightSource& source, const Checkpoint& checkpoint,
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
                       "F64, F32, F16, BF16 and the block types of GGUF are supported");
    }
    return *tensor;
  }
  throw ModelError(fmt::format("{} weight `{}`", family, source.names.front()),
                   fmt::format("is missing from {}", checkpoint.path().string()),
                   source.names.size() > 1
                       ? fmt::format("none of its other names is there either: {}",
                                     fmt::join(source.names.begin() + 1, source.names.end(), ", "))
                       : "the file and config.json disagree: download both from one revision");
}

/// The type in which one source is stored.
DataType storage_type(const WeightSpec& spec, const WeightSource& source,
                      const CheckpointTensor& tensor, MatrixStorage storage) {
  if (spec.role == WeightRole::kVector) return DataType::kF32;
  if (storage == MatrixStorage::kF16) return DataType::kF16;
  const DataType type = device_type(tensor.type).value_or(DataType::kF32);
  if (spec.role == WeightRole::kExperts && is_block_type(type)) return DataType::kF16;
  if (source.form == SourceForm::kPlusOne) return DataType::kF32;
  // Blocks stay as they are or become numbers; rows of the file's blocks must be rows of the
  // weight.
  const bool whole =
      source.form == SourceForm::kAsInFile && source.shape.columns() % block_elements(type) == 0;
  return is_block_type(type) && !whole ? DataType::kF32 : type;
}

/// Neighbouring sources of one type.
struct SourceRange {
  size_t first, count;
};

struct Resolved {
  std::vector<const CheckpointTensor*> sources;  // null: zeros
  std::vector<WeightSegment> segments;
  std::vector<SourceRange> ranges;  // of each segment
};

Resolved resolve(const WeightSpec& spec, const Checkpoint& checkpoint, const std::string& family,
                 MatrixStorage storage) {
  Resolved result;
  uint64_t elements = 0;
  std::vector<DataType> types;
  for (size_t i = 0; i < spec.sources.size(); ++i) {
    const WeightSource& source = spec.sources[i];
    if (source.form == SourceForm::kZeros) {
      result.sources.push_back(nullptr);
      types.push_back(DataType::kF32);
    } else {
      result.sources.push_back(&find_source(source, checkpoint, family));
      types.push_back(storage_type(spec, source, *result.sources.back(), storage));
    }
    elements += source.shape.elements();
    if (!(source.shape == spec.sources[i - i % spec.in_turns].shape))
      throw ShapeError(spec.name, "sources whose rows take turns differ in shape", "");
  }
  if (elements != spec.shape.elements()) {
    throw ShapeError(spec.name,
                     fmt::format("{} elements in the sources, {} in {}", elements,
                                 spec.shape.elements(), spec.shape.to_string()),
                     "");
  }
  const bool same =
      std::all_of(types.begin(), types.end(), [&](DataType t) { return t == types.front(); });
  if (same || spec.in_turns > 1 || spec.role == WeightRole::kExperts) {
    result.segments.push_back({same ? types.front() : DataType::kF32, spec.shape});
    result.ranges.push_back({0, types.size()});
    return result;
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
  return result;
}

/// bf16 of a number that is one.
uint16_t upper_half(float value) {
  return static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
}

/// A source as it will lie on the device.
struct Converted {
  const CheckpointTensor* tensor;  // null: zeros
  SourceForm form;
  DataType type;
  uint64_t rows, columns;  // of the result
  uint64_t skipped;        // elements of the file before the first

  /// Stored as in the file, byte by byte where there are no blocks.
  bool as_it_is() const {
    return form == SourceForm::kAsInFile && device_type(tensor->type) == type &&
           !is_block_type(type);
  }

  /// Elements [first, first + count), which are whole rows of a transposed source.
  std::vector<float> floats(uint64_t first, uint64_t count) const {
    if (form != SourceForm::kTransposed) {
      std::vector<float> values = read_floats(*tensor, skipped + first, count);
      if (form == SourceForm::kPlusOne) {
        for (float& value : values) value += 1;
      }
      return values;
    }
    std::vector<float> values(count);
    const uint64_t first_row = first / columns, row_count = count / columns;
    for (uint64_t column = 0; column < columns; ++column) {
      const std::vector<float> line = read_floats(*tensor, column * rows + first_row, row_count);
      for (uint64_t row = 0; row < row_count; ++row) values[row * columns + column] = line[row];
    }
    return values;
  }

  /// Those elements as the device holds them.
  std::vector<std::byte> bytes(uint64_t first, uint64_t count) const {
    if (is_block_type(type)) {
      std::vector<std::byte> packed(count / columns * row_bytes(type, columns));
      const uint64_t block = block_elements(type), block_bytes = gguf_block_bytes(type);
      pack_blocks(type, columns,
                  tensor->bytes.subspan((skipped + first) / block * block_bytes,
                                        count / block * block_bytes),
                  packed);
      return packed;
    }
    std::vector<std::byte> result(count * size_of(type));
    if (form == SourceForm::kZeros) return result;
    if (as_it_is()) {
      std::memcpy(result.data(), tensor->bytes.data() + (skipped + first) * size_of(type),
                  result.size());
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

  /// Elements converted at a time: whole rows where that matters.
  uint64_t piece() const {
    const uint64_t in_rows = std::max<uint64_t>(kPieceElements / columns, 1) * columns;
    return form == SourceForm::kTransposed || is_block_type(type) ? in_rows : kPieceElements;
  }
};

/// Writes one source behind `at` bytes of a segment, converted on the way where the types differ.
void write_source(WeightSink& sink, size_t segment, uint64_t at, const Converted& source) {
  if (source.as_it_is()) {
    const uint64_t size = size_of(source.type);
    sink.write(
        segment, at,
        source.tensor->bytes.subspan(source.skipped * size, source.rows * source.columns * size));
    return;
  }
  const uint64_t elements = source.rows * source.columns, piece = source.piece();
  for (uint64_t first = 0; first < elements; first += piece) {
    const std::vector<std::byte> bytes = source.bytes(first, std::min(piece, elements - first));
    sink.write(segment, at, bytes);
    at += bytes.size();
  }
}

/// Writes sources of one shape behind `at` bytes of a segment, row by row in turn.
void write_in_turns(WeightSink& sink, size_t segment, uint64_t at,
                    std::span<const Converted> sources) {
  const uint64_t rows = sources.front().rows, columns = sources.front().columns;
  const uint64_t bytes_per_row = row_bytes(sources.front().type, columns);
  const uint64_t step = std::max<uint64_t>(kPieceElements / columns, 1);
  for (uint64_t first = 0; first < rows; first += step) {
    const uint64_t count = std::min(step, rows - first);
    std::vector<std::byte> piece(count * sources.size() * bytes_per_row);
    for (size_t i = 0; i < sources.size(); ++i) {
      const std::vector<std::byte> bytes = sources[i].bytes(first * columns, count * columns);
      for (uint64_t row = 0; row < count; ++row)
        std::memcpy(piece.data() + (row * sources.size() + i) * bytes_per_row,
                    bytes.data() + row * bytes_per_row, bytes_per_row);
    }
    sink.write(segment, at + first * sources.size() * bytes_per_row, piece);
  }
}

}  // namespace

uint64_t weight_bytes(const WeightTable& table, const Checkpoint& checkpoint,
                      const std::string& family, MatrixStorage storage) {
  uint64_t total = 0;
  for (const WeightSpec& spec : table) {
    for (const WeightSegment& segment : resolve(spec, checkpoint, family, storage).segments)
      total += aligned_weight_bytes(segment.bytes());
  }
  return total;
}

void read_weights(const WeightTable& table, const Checkpoint& checkpoint, const std::string& family,
                  MatrixStorage storage, WeightSink& sink, const WeightProgress& progress) {
  const uint64_t total = progress ? weight_bytes(table, checkpoint, family, storage) : 0;
  uint64_t done = 0;
  for (const WeightSpec& spec : table) {
    const Resolved resolved = resolve(spec, checkpoint, family, storage);
    sink.begin(spec.name, resolved.segments);
    for (size_t number = 0; number < resolved.segments.size(); ++number) {
      const WeightSegment& segment = resolved.segments[number];
      const SourceRange range = resolved.ranges[number];
      std::vector<Converted> sources;
      for (size_t i = range.first; i < range.first + range.count; ++i) {
        const WeightSource& source = spec.sources[i];
        const bool vector = source.shape.rank() == 1;
        const bool turns = vector && spec.in_turns > 1;
        sources.push_back({resolved.sources[i], source.form, segment.type,
                           turns ? source.shape.elements() : source.shape.rows(),
                           turns ? 1 : source.shape.columns(),
                           source.first_row * (vector ? 1 : source.shape.columns())});
      }
      uint64_t offset = 0;
      for (size_t i = 0; i < sources.size(); i += spec.in_turns) {
        const auto group = std::span<const Converted>(sources).subspan(i, spec.in_turns);
        if (spec.in_turns > 1) {
          write_in_turns(sink, number, offset, group);
        } else {
          write_source(sink, number, offset, group.front());
        }
        for (const Converted& source : group)
          offset += source.rows * row_bytes(segment.type, source.columns);
      }
      // The sink has its copy: what was read of the file need not stay in memory.
      for (const Converted& source : sources)
        if (source.tensor) release_pages(source.tensor->bytes);
      done += aligned_weight_bytes(segment.bytes());
    }
    if (progress) progress(done, total);
  }
}

}  // namespace mulciber
