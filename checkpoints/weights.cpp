#include "checkpoints/weights.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/blocks.h"
#include "checkpoints/tensor_values.h"
#include "mulciber/error.h"

namespace mulciber {
namespace {

// Conversion goes through host memory in pieces of this many elements.
constexpr uint64_t kPieceElements = 256 * 1024;

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
                       kReadableTypes);
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
  if (source.form == SourceForm::kPlusOne || !source.row_scales.empty()) return DataType::kF32;
  // Blocks stay or become numbers; rows of the file's blocks must be rows of the weight.
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
  std::vector<const CheckpointTensor*> scales;   // null: none
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
    if (source.form == SourceForm::kZeros || source.form == SourceForm::kOnes) {
      result.sources.push_back(nullptr);
      types.push_back(DataType::kF32);
    } else {
      result.sources.push_back(&find_source(source, checkpoint, family));
      types.push_back(storage_type(spec, source, *result.sources.back(), storage));
    }
    result.scales.push_back(
        source.row_scales.empty()
            ? nullptr
            : &find_source({source.row_scales, {source.shape[0]}}, checkpoint, family));
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
  const bool same = std::ranges::all_of(types, [&](DataType t) { return t == types.front(); });
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
  uint64_t rows, columns;     // of the result
  uint64_t skipped;           // elements of the file before the first
  uint64_t taps = 1;          // of a convolution
  uint64_t matrices = 1;      // one below the other, each with its share of the rows
  std::vector<float> scales;  // of rows, or of elements; or empty

  /// Stored as in the file, byte by byte where there are no blocks.
  bool as_it_is() const {
    return form == SourceForm::kAsInFile && device_type(tensor->type) == type &&
           !is_block_type(type) && scales.empty();
  }

  /// Whether elements are asked for by whole rows.
  bool by_rows() const {
    return form == SourceForm::kTransposed || form == SourceForm::kTapByTap || is_block_type(type);
  }

  /// Elements [first, first + count), whole rows where by_rows() says so.
  std::vector<float> floats(uint64_t first, uint64_t count) const {
    if (form == SourceForm::kOnes) return std::vector<float>(count, 1.0f);
    if (form != SourceForm::kTransposed) {
      std::vector<float> values = read_floats(*tensor, skipped + first, count);
      if (form == SourceForm::kPlusOne) {
        for (float& value : values) value += 1;
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

  /// Those elements as the device holds them.
  std::vector<std::byte> bytes(uint64_t first, uint64_t count) const {
    if (is_block_type(type)) {
      std::vector<std::byte> packed(count / columns * row_bytes(type, columns));
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

  /// Elements converted at a time: whole rows where that matters.
  uint64_t piece() const {
    const uint64_t in_rows = std::max<uint64_t>(kPieceElements / columns, 1) * columns;
    return by_rows() ? in_rows : kPieceElements;
  }
};

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

/// A weight that is being read: a segment of it, of that a group of sources, of that a piece.
struct WeightReader::Open {
  Resolved resolved;
  size_t segment = 0;
  std::vector<Converted> sources;  // of the segment
  size_t group = 0;                // its first source: as many as take turns belong together
  uint64_t first = 0;              // element of each, or row where rows take turns, that comes next
  uint64_t offset = 0;             // bytes of the segment that are written

  /// Elements of one source, at most so many bytes of them where they need no conversion. Result:
  /// bytes written.
  uint64_t write_piece(WeightSink& sink, uint64_t most) {
    const Converted& source = sources[group];
    const uint64_t elements = source.rows * source.columns;
    if (source.as_it_is()) {
      const uint64_t size = size_of(source.type);
      most = std::min(most, source.tensor->most_at_once());
      const uint64_t count = std::min(std::max<uint64_t>(most / size, 1), elements - first);
      std::vector<std::byte> scratch;
      sink.write(segment, offset,
                 source.tensor->read((source.skipped + first) * size, count * size, scratch));
      return advance(count, elements, 1, count * size);
    }
    const uint64_t count = std::min(source.piece(), elements - first);
    const std::vector<std::byte> bytes = source.bytes(first, count);
    sink.write(segment, offset, bytes);
    return advance(count, elements, 1, bytes.size());
  }

  /// Rows of sources of one shape, in turn.
  uint64_t write_rows_in_turns(WeightSink& sink, size_t turns) {
    const auto taking_turns = std::span<const Converted>(sources).subspan(group, turns);
    const uint64_t rows = taking_turns.front().rows, columns = taking_turns.front().columns;
    const uint64_t bytes_per_row = row_bytes(taking_turns.front().type, columns);
    const uint64_t count = std::min(std::max<uint64_t>(kPieceElements / columns, 1), rows - first);
    std::vector<std::byte> piece(count * turns * bytes_per_row);
    for (size_t i = 0; i < turns; ++i) {
      const std::vector<std::byte> bytes = taking_turns[i].bytes(first * columns, count * columns);
      for (uint64_t row = 0; row < count; ++row)
        std::memcpy(piece.data() + (row * turns + i) * bytes_per_row,
                    bytes.data() + row * bytes_per_row, bytes_per_row);
    }
    sink.write(segment, offset, piece);
    return advance(count, rows, turns, piece.size());
  }

 private:
  uint64_t advance(uint64_t count, uint64_t all, size_t turns, uint64_t bytes) {
    first += count;
    offset += bytes;
    if (first == all) {
      group += turns;
      first = 0;
    }
    return bytes;
  }
};

WeightReader::WeightReader(const WeightTable& table, const Checkpoint& checkpoint,
                           std::string family, MatrixStorage storage, WeightSink& sink)
    : table_(table),
      checkpoint_(checkpoint),
      family_(std::move(family)),
      storage_(storage),
      sink_(sink),
      total_(weight_bytes(table, checkpoint, family_, storage)) {}

WeightReader::~WeightReader() = default;

void WeightReader::open_segment() {
  const WeightSpec& spec = table_[spec_];
  if (!open_) {
    open_ = std::make_unique<Open>();
    open_->resolved = resolve(spec, checkpoint_, family_, storage_);
    sink_.begin(spec.name, open_->resolved.segments);
  }
  const WeightSegment& segment = open_->resolved.segments[open_->segment];
  const SourceRange range = open_->resolved.ranges[open_->segment];
  for (size_t i = range.first; i < range.first + range.count; ++i) {
    const WeightSource& source = spec.sources[i];
    const bool vector = source.shape.rank() == 1;
    const bool turns = spec.in_turns > 1 && (vector || spec.turns_by_element);
    if (source.form == SourceForm::kTapByTap) {
      open_->sources.push_back({open_->resolved.sources[i], source.form, segment.type,
                                source.shape[0], source.shape[1] * source.shape[2], 0,
                                source.shape[2]});
      continue;
    }
    open_->sources.push_back(
        {.tensor = open_->resolved.sources[i],
         .form = source.form,
         .type = segment.type,
         .rows = turns ? source.shape.elements() : source.shape.rows(),
         .columns = turns ? 1 : source.shape.columns(),
         .skipped = source.first_row * (vector ? 1 : source.shape.columns()),
         .matrices = source.shape.rank() == 3 ? source.shape[0] : 1,
         .scales = open_->resolved.scales[i]
                       ? read_floats(*open_->resolved.scales[i], 0, source.shape[0])
                       : std::vector<float>()});
  }
}

void WeightReader::close_segment() {
  // The sink has its copy: what was read of the file need not stay in memory.
  for (const Converted& source : open_->sources)
    if (source.tensor) source.tensor->release();
  done_ += aligned_weight_bytes(open_->resolved.segments[open_->segment].bytes());
  open_->sources.clear();
  open_->group = 0;
  open_->offset = 0;
  if (++open_->segment < open_->resolved.segments.size()) return;
  open_.reset();
  ++spec_;
}

bool WeightReader::step(uint64_t bytes) {
  uint64_t written = 0;
  while (spec_ < table_.size() && written < bytes) {
    if (!open_ || open_->sources.empty()) open_segment();
    const size_t turns = table_[spec_].in_turns;
    written += turns > 1 ? open_->write_rows_in_turns(sink_, turns)
                         : open_->write_piece(sink_, bytes - written);
    if (open_->group == open_->sources.size()) close_segment();
  }
  return spec_ < table_.size();
}

namespace {

/// Hands everything on, and tells whenever a weight begins.
class TellingSink : public WeightSink {
 public:
  TellingSink(WeightSink& to, std::function<void()> tell) : to_(to), tell_(std::move(tell)) {}
  void begin(const std::string& name, std::span<const WeightSegment> segments) override {
    tell_();
    to_.begin(name, segments);
  }
  void write(size_t segment, uint64_t offset, std::span<const std::byte> bytes) override {
    to_.write(segment, offset, bytes);
  }

 private:
  WeightSink& to_;
  std::function<void()> tell_;
};

}  // namespace

void read_weights(const WeightTable& table, const Checkpoint& checkpoint, const std::string& family,
                  MatrixStorage storage, WeightSink& sink, const WeightProgress& progress) {
  const WeightReader* at = nullptr;
  const auto tell = [&] {
    if (progress && at->done() > 0) progress(at->done(), at->total());
  };
  TellingSink telling(sink, tell);
  WeightReader reader(table, checkpoint, family, storage, telling);
  at = &reader;
  reader.step(UINT64_MAX);
  tell();
}

}  // namespace mulciber
