#include "models/weights.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/tensor_values.h"
#include "mulciber/error.h"

namespace mulciber {
namespace {

// Conversion goes through host memory in pieces of this many elements.
constexpr uint64_t kPieceElements = 256 * 1024;
// Buffer sizes are multiples of this (runtime/memory.h).
constexpr uint64_t kAllocationStep = 256;

/// Whether a file's shape means `wanted`: the same extents after leading 1s.
bool same_shape(std::span<const uint64_t> found, const Shape& wanted) {
  size_t skip = 0;
  while (found.size() - skip > wanted.rank() && found[skip] == 1) ++skip;
  found = found.subspan(skip);
  if (found.size() != wanted.rank()) return false;
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i] != wanted[static_cast<int>(i)]) return false;
  }
  return true;
}

const CheckpointTensor& find_source(const WeightSource& source, const Checkpoint& checkpoint,
                                    const std::string& family) {
  for (const std::string& name : source.names) {
    const CheckpointTensor* tensor = checkpoint.find(name);
    if (!tensor) continue;
    const std::string where = fmt::format("{} weight `{}`", family, name);
    if (!same_shape(tensor->shape, source.shape)) {
      throw ModelError(where,
                       fmt::format("has shape {}, config says {}", tensor->shape_text(),
                                   source.shape.to_string()),
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

DataType storage_type(const WeightSpec& spec, std::span<const CheckpointTensor* const> sources,
                      MatrixStorage storage) {
  if (spec.role == WeightRole::kVector) return DataType::kF32;
  if (storage == MatrixStorage::kF16) return DataType::kF16;
  const bool all_half = std::all_of(sources.begin(), sources.end(), [](const auto* tensor) {
    return tensor->type == CheckpointType::kF16;
  });
  return all_half ? DataType::kF16 : DataType::kF32;
}

struct Resolved {
  std::vector<const CheckpointTensor*> sources;
  DataType type;
  uint64_t bytes;
};

Resolved resolve(const WeightSpec& spec, const Checkpoint& checkpoint, const std::string& family,
                 MatrixStorage storage) {
  Resolved result;
  uint64_t elements = 0;
  for (const WeightSource& source : spec.sources) {
    result.sources.push_back(&find_source(source, checkpoint, family));
    elements += source.shape.elements();
  }
  if (elements != spec.shape.elements()) {
    throw ShapeError(spec.name,
                     fmt::format("{} elements in the sources, {} in {}", elements,
                                 spec.shape.elements(), spec.shape.to_string()),
                     "");
  }
  result.type = storage_type(spec, result.sources, storage);
  result.bytes = elements * size_of(result.type);
  return result;
}

BufferView part_of(const BufferView& view, uint64_t offset, uint64_t size) {
  BufferView part = view;
  part.offset += offset;
  part.size = size;
  if (part.address) part.address += offset;
  if (part.mapped) part.mapped += offset;
  return part;
}

/// Copies one source to `to`, converted on the way where the types differ.
void upload_source(Uploader& uploader, const CheckpointTensor& tensor, DataType type,
                   const BufferView& to) {
  const bool as_it_is = (type == DataType::kF32 && tensor.type == CheckpointType::kF32) ||
                        (type == DataType::kF16 && tensor.type == CheckpointType::kF16);
  if (as_it_is) {
    uploader.copy(to, tensor.bytes);
    return;
  }
  const uint64_t elements = tensor.elements();
  std::vector<uint16_t> halves;
  for (uint64_t first = 0; first < elements; first += kPieceElements) {
    const uint64_t count = std::min(kPieceElements, elements - first);
    const std::vector<float> values = read_floats(tensor, first, count);
    std::span<const std::byte> bytes = std::as_bytes(std::span(values));
    if (type == DataType::kF16) {
      halves.resize(count);
      std::transform(values.begin(), values.end(), halves.begin(), float_to_half);
      bytes = std::as_bytes(std::span(halves));
    }
    uploader.copy(part_of(to, first * size_of(type), bytes.size()), bytes);
  }
}

double gigabytes(uint64_t bytes) {
  return static_cast<double>(bytes) / (1024.0 * 1024 * 1024);
}

}  // namespace

uint64_t weight_bytes(const WeightTable& table, const Checkpoint& checkpoint,
                      const std::string& family, MatrixStorage storage) {
  uint64_t total = 0;
  for (const WeightSpec& spec : table) {
    const uint64_t bytes = resolve(spec, checkpoint, family, storage).bytes;
    total += (bytes + kAllocationStep - 1) / kAllocationStep * kAllocationStep;
  }
  return total;
}

Weights::Weights(Device& device, const WeightTable& table, const Checkpoint& checkpoint,
                 const std::string& family, MatrixStorage storage) {
  Uploader uploader(device);
  for (const WeightSpec& spec : table) {
    const Resolved resolved = resolve(spec, checkpoint, family, storage);
    Buffer buffer = device.memory().allocate(resolved.bytes, MemoryUse::kDevice);
    uint64_t offset = 0;
    for (const CheckpointTensor* source : resolved.sources) {
      const uint64_t bytes = source->elements() * size_of(resolved.type);
      upload_source(uploader, *source, resolved.type, part_of(buffer.view(), offset, bytes));
      offset += bytes;
    }
    tensors_[spec.name] = buffer.tensor(spec.shape, resolved.type);
    bytes_ += buffer.size();
    buffers_.push_back(std::move(buffer));
  }
  uploader.finish();
}

void Weights::add(Device& device, const std::string& name, Shape shape,
                  std::span<const float> values) {
  Buffer buffer = device.memory().allocate(values.size_bytes(), MemoryUse::kDevice);
  upload(device, buffer.view(), std::as_bytes(values));
  tensors_[name] = buffer.tensor(shape, DataType::kF32);
  bytes_ += buffer.size();
  buffers_.push_back(std::move(buffer));
}

const Tensor& Weights::operator[](const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end())
    throw ShapeError(name, "the model's weight table has no such weight", "");
  return found->second;
}

void require_memory(Device& device, uint64_t bytes, uint64_t limit, const std::string& what) {
  const uint64_t available = device.memory().available();
  const uint64_t most = limit > 0 ? std::min(limit, available) : available;
  if (bytes <= most) return;
  throw DeviceError(
      DeviceError::Kind::kOutOfMemory, device.capabilities().name,
      fmt::format("{} needs {:.2f} GiB of device memory, {} is {:.2f} GiB", what, gigabytes(bytes),
                  limit > 0 && limit <= available ? "the limit given" : "what is available",
                  gigabytes(most)),
      "use another device, 16-bit weights, smaller batches or fewer beams");
}

}  // namespace mulciber
