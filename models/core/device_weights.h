// The weights of a model in device memory.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "checkpoints/weights.h"
#include "runtime/device.h"
#include "runtime/tensor.h"
#include "runtime/transfer.h"

namespace mulciber {

struct ModelOptions;

/// Device memory that Weights::add() takes for a weight of this shape; weight_bytes() counts
/// weights that are read from files.
inline uint64_t added_weight_bytes(const Shape& shape, DataType type = DataType::kF32) {
  return aligned_weight_bytes(shape.elements() * size_of(type));
}

/// The weights of a model in device memory. The CPU keeps no copy.
class Weights {
 public:
  Weights(Weights&&) = default;
  Weights& operator=(Weights&&) = default;

  /// Adds a weight that is computed instead of read from a file. type: f32 or f16.
  void add(Device& device, const std::string& name, Shape shape, std::span<const float> values,
           DataType type = DataType::kF32);

  /// The tensor of a weight. Throws ShapeError when the table has no weight of this name, or when
  /// the weight consists of several tensors.
  const Tensor& operator[](const std::string& name) const;
  /// The tensors of a weight whose sources may differ in type; each holds the next rows.
  const std::vector<Tensor>& segments(const std::string& name) const;
  uint64_t bytes() const { return bytes_; }
  /// Name in the file of the first weight that holds NaN or infinity. Reads all weights back.
  std::optional<std::string> first_not_finite(Device& device) const;

 private:
  friend class DeviceWeightSink;
  Weights() = default;
  /// Notes which tensors of the file each weight comes from.
  void note_sources(const WeightTable& table, const Checkpoint& checkpoint);
  /// A tensor of the file, and how many rows of a weight come from it.
  struct Source {
    std::string name;
    uint64_t rows;
  };
  std::vector<Buffer> buffers_;
  std::map<std::string, std::vector<Tensor>> tensors_;
  std::map<std::string, std::vector<Source>> sources_;  // sources of each weight, in row order
  uint64_t bytes_ = 0;
};

/// Creates Weights: each weight gets a buffer, which is filled through the staging ring.
class DeviceWeightSink : public WeightSink {
 public:
  explicit DeviceWeightSink(Device& device) : device_(device), uploader_(device) {}

  void begin(const std::string& name, std::span<const WeightSegment> segments) override;
  void write(size_t segment, uint64_t offset, std::span<const std::byte> bytes) override;
  /// Returns the weights. Call it once, after all weights of the table were written.
  Weights finish(const WeightTable& table, const Checkpoint& checkpoint);

 private:
  Device& device_;
  Uploader uploader_;
  Weights weights_;
  std::span<const Tensor> current_;
};

/// Loads the weights of a model to a device in parts (models/adapters/weights_load.h). The
/// destructor frees the weights loaded so far, unless they were taken.
class WeightsLoad {
 public:
  virtual ~WeightsLoad() = default;

  /// Loads the next part, see WeightReader::step(). Returns false once all weights are on the
  /// device.
  virtual bool step(uint64_t bytes) = 0;
  virtual uint64_t done() const = 0;
  virtual uint64_t total() const = 0;
  /// Returns the weights. Call it once, after step() returned false.
  virtual Weights take() = 0;
};

/// The weight table as load() reads it. WeightSpec::any_column_order is cleared where matrices do
/// not stay in quantized blocks: adapters are merged, activations are f16, or options.matrices is
/// not kAsInFile.
WeightTable table_to_read(WeightTable table, const ModelOptions& options);
/// Throws as require_memory() when a model does not fit, not counting the weights of `options` that
/// are already loaded. bytes: memory of the model, weights included.
void require_model(Device& device, uint64_t bytes, const ModelOptions& options,
                   const std::string& what);

/// Throws DeviceError kOutOfMemory when `bytes` (of `what`, for the message) are above `limit`, or
/// above what the device has available where limit is 0.
void require_memory(Device& device, uint64_t bytes, uint64_t limit, const std::string& what);

}  // namespace mulciber
