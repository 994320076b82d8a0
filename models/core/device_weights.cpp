#include "models/core/device_weights.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/finite.h"
#include "base/half.h"
#include "models/core/model_options.h"
#include "mulciber/error.h"
#include "runtime/buffer_part.h"

namespace mulciber {
namespace {

std::string bytes_text(uint64_t bytes) {
  if (bytes >= 1ull << 29)
    return fmt::format("{:.2f} GiB", static_cast<double>(bytes) / (1ull << 30));
  if (bytes >= 1ull << 19)
    return fmt::format("{:.2f} MiB", static_cast<double>(bytes) / (1ull << 20));
  return fmt::format("{} bytes", bytes);
}

}  // namespace

void DeviceWeightSink::begin(const std::string& name, std::span<const WeightSegment> segments) {
  uint64_t whole = 0;
  for (const WeightSegment& segment : segments) whole += aligned_weight_bytes(segment.bytes());
  Buffer buffer = device_.memory().allocate(whole, MemoryUsage::kWeights);
  std::vector<Tensor>& tensors = weights_.tensors_[name];
  uint64_t first = 0;
  for (const WeightSegment& segment : segments) {
    tensors.push_back({.shape = segment.shape,
                       .type = segment.type,
                       .view = part_of(buffer.view(), first, segment.bytes())});
    first += aligned_weight_bytes(segment.bytes());
  }
  current_ = tensors;
  weights_.buffers_.push_back(std::move(buffer));
}

void DeviceWeightSink::write(size_t segment, uint64_t offset, std::span<const std::byte> bytes) {
  uploader_.copy(part_of(current_[segment].view, offset, bytes.size()), bytes);
}

Weights DeviceWeightSink::finish(const WeightTable& table, const Checkpoint& checkpoint) {
  uploader_.finish();
  weights_.note_sources(table, checkpoint);
  return std::move(weights_);
}

void Weights::note_sources(const WeightTable& table, const Checkpoint& checkpoint) {
  for (const Buffer& buffer : buffers_) bytes_ += buffer.size();
  for (const WeightSpec& weight : table) {
    std::vector<Source>& sources = sources_[weight.name];
    for (const WeightSource& source : weight.sources) {
      const auto name =
          std::find_if(source.names.begin(), source.names.end(),
                       [&](const std::string& one) { return checkpoint.find(one) != nullptr; });
      // Interleaved rows all count as rows of the first source.
      const bool whole = weight.interleaved > 1 || weight.sources.size() == 1;
      sources.push_back({name == source.names.end() ? weight.name : *name,
                         whole ? weight.shape.rows() : source.shape.rows()});
    }
  }
}

WeightTable table_to_read(WeightTable table, const ModelOptions& options) {
  const bool merges = options.merge_adapters && !options.adapters.empty();
  if (options.matrices != MatrixStorage::kAsInFile || options.activations != DataType::kF32 ||
      merges)
    for (WeightSpec& spec : table) spec.any_column_order = false;
  return table;
}

void require_model(Device& device, uint64_t bytes, const ModelOptions& options,
                   const std::string& what) {
  const uint64_t there = options.weights ? std::min(options.weights->done(), bytes) : 0;
  // The limit stays above 0, which would mean no limit.
  const uint64_t limit = options.memory_limit == 0
                             ? 0
                             : options.memory_limit - std::min(there, options.memory_limit - 1);
  require_memory(device, bytes - there, limit, what);
}

void Weights::add(Device& device, const std::string& name, Shape shape,
                  std::span<const float> values, DataType type) {
  std::vector<uint16_t> halves;
  if (type == DataType::kF16)
    std::ranges::transform(values, std::back_inserter(halves), float_to_half);
  const auto bytes = halves.empty() ? std::as_bytes(values) : std::as_bytes(std::span(halves));
  Buffer buffer = device.memory().allocate(added_weight_bytes(shape, type), MemoryUsage::kWeights);
  const BufferView view = part_of(buffer.view(), 0, bytes.size());
  upload(device, view, bytes);
  tensors_[name] = {{.shape = shape, .type = type, .view = view}};
  bytes_ += buffer.size();
  buffers_.push_back(std::move(buffer));
}

const std::vector<Tensor>& Weights::segments(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end())
    throw ShapeError(name, "the model's weight table has no such weight", "");
  return found->second;
}

const Tensor& Weights::operator[](const std::string& name) const {
  const std::vector<Tensor>& all = segments(name);
  if (all.size() != 1)
    throw ShapeError(name, fmt::format("stands in {} tensors of different types", all.size()), "");
  return all.front();
}

std::optional<std::string> Weights::first_not_finite(Device& device) const {
  constexpr uint64_t kPiece = 16ull << 20;
  for (const auto& [name, tensors] : tensors_) {
    uint64_t before = 0;  // rows in the segments before this one
    for (const Tensor& tensor : tensors) {
      const uint64_t columns = tensor.shape.columns(), bytes = row_bytes(tensor.type, columns);
      const uint64_t rows = tensor.shape.rows(), piece = std::max<uint64_t>(1, kPiece / bytes);
      for (uint64_t first = 0; first < rows; first += piece) {
        const uint64_t count = std::min(piece, rows - first);
        const std::vector<std::byte> read =
            download(device, part_of(tensor.view, first * bytes, count * bytes));
        if (all_finite(tensor.type, columns, read)) continue;
        uint64_t row = 0;
        while (all_finite(tensor.type, columns, std::span(read).subspan(row * bytes, bytes))) ++row;
        row += before + first;
        const auto sources = sources_.find(name);
        if (sources == sources_.end()) return name;
        for (const Source& source : sources->second) {
          if (row < source.rows) return source.name;
          row -= source.rows;
        }
        return name;
      }
      before += rows;
    }
  }
  return std::nullopt;
}

void require_memory(Device& device, uint64_t bytes, uint64_t limit, const std::string& what) {
  const uint64_t available = device.memory().available();
  const uint64_t most = limit > 0 ? std::min(limit, available) : available;
  if (bytes <= most) return;
  throw DeviceError(
      DeviceError::Kind::kOutOfMemory, device.capabilities().name,
      fmt::format("{} needs {} of device memory, {} is {}", what, bytes_text(bytes),
                  limit > 0 && limit <= available ? "the limit given" : "what is available",
                  bytes_text(most)),
      "use another device, 16-bit weights, smaller batches or fewer beams");
}

}  // namespace mulciber
