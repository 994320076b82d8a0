#include "checkpoints/weights.h"

#include <cstring>

#include "checkpoints/tensor_values.h"
#include "checkpoints/weight_sources.h"

namespace mulciber {

std::vector<WeightSegment> weight_segments(const WeightSpec& spec, const Checkpoint& checkpoint,
                                           const std::string& family, MatrixStorage storage) {
  return resolve(spec, checkpoint, family, storage).segments;
}

uint64_t weight_bytes(const WeightTable& table, const Checkpoint& checkpoint,
                      const std::string& family, MatrixStorage storage) {
  uint64_t total = 0;
  for (const WeightSpec& spec : table) {
    for (const WeightSegment& segment : weight_segments(spec, checkpoint, family, storage))
      total += aligned_weight_bytes(segment.bytes());
  }
  return total;
}

/// The state of a weight that is being read: a segment, in it a group of sources, in it a piece.
struct WeightReader::Open {
  Resolved resolved;
  size_t segment = 0;
  std::vector<Converted> sources;  // sources of the segment
  size_t group = 0;                // index of the first source of a group of interleaved sources
  uint64_t first = 0;              // next element of each source, or next interleaved row
  uint64_t offset = 0;             // bytes of the segment written so far

  /// Writes elements of one source; without conversion at most `most` bytes. Returns the bytes
  /// written.
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

  /// Writes interleaved rows of sources of one shape.
  uint64_t write_interleaved_rows(WeightSink& sink, size_t interleaved) {
    const auto together = std::span<const Converted>(sources).subspan(group, interleaved);
    const uint64_t rows = together.front().rows, columns = together.front().columns;
    const uint64_t bytes_per_row = row_bytes(together.front().type, columns);
    const uint64_t count = std::min(std::max<uint64_t>(kPieceElements / columns, 1), rows - first);
    std::vector<std::byte> piece(count * interleaved * bytes_per_row);
    for (size_t i = 0; i < interleaved; ++i) {
      const std::vector<std::byte> bytes = together[i].bytes(first * columns, count * columns);
      for (uint64_t row = 0; row < count; ++row)
        std::memcpy(piece.data() + (row * interleaved + i) * bytes_per_row,
                    bytes.data() + row * bytes_per_row, bytes_per_row);
    }
    sink.write(segment, offset, piece);
    return advance(count, rows, interleaved, piece.size());
  }

  /// Writes the segment without sources.
  uint64_t write_column_order(WeightSink& sink) const {
    const auto bytes = std::as_bytes(std::span(*resolved.column_order));
    sink.write(segment, 0, bytes);
    return bytes.size();
  }

 private:
  uint64_t advance(uint64_t count, uint64_t all, size_t interleaved, uint64_t bytes) {
    first += count;
    offset += bytes;
    if (first == all) {
      group += interleaved;
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
    const bool by_element = spec.interleaved > 1 && (vector || spec.interleaves_elements);
    if (source.form == SourceForm::kTapByTap) {
      open_->sources.push_back({open_->resolved.sources[i].tensor, source.form, segment.type,
                                source.shape[0], source.shape[1] * source.shape[2], 0,
                                source.shape[2]});
      continue;
    }
    open_->sources.push_back(
        {.tensor = open_->resolved.sources[i].tensor,
         .form = open_->resolved.sources[i].exponents ? SourceForm::kAsInFile : source.form,
         .type = segment.type,
         .rows = by_element ? source.shape.elements() : source.shape.rows(),
         .columns = by_element ? 1 : source.shape.columns(),
         .skipped = source.first_row * (vector ? 1 : source.shape.columns()),
         .matrices = source.shape.rank() == 3 ? source.shape[0] : 1,
         .scales = open_->resolved.scales[i]
                       ? read_floats(*open_->resolved.scales[i], 0, source.shape[0])
                       : std::vector<float>(),
         .exponents = open_->resolved.sources[i].exponents});
  }
}

void WeightReader::close_segment() {
  // The sink has its copy: pages of the file can leave memory.
  for (const Converted& source : open_->sources)
    for (const CheckpointTensor* tensor : {source.tensor, source.exponents})
      if (tensor) tensor->release();
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
    const size_t interleaved = table_[spec_].interleaved;
    written += open_->sources.empty() ? open_->write_column_order(sink_)
               : interleaved > 1      ? open_->write_interleaved_rows(sink_, interleaved)
                                      : open_->write_piece(sink_, bytes - written);
    if (open_->group == open_->sources.size()) close_segment();
  }
  return spec_ < table_.size();
}

namespace {

/// Passes everything on, and reports when a weight begins.
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
