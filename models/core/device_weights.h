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

/// Device memory that Weights::add() takes for a weight of that shape, as weight_bytes() counts
/// what is read from files.
inline uint64_t added_weight_bytes(const Shape& shape, DataType type = DataType::kF32) {
  return aligned_weight_bytes(shape.elements() * size_of(type));
}

/// The weights of a model in device memory. Nothing of them stays on the host.
class Weights {
 public:
  Weights(Weights&&) = default;
  Weights& operator=(Weights&&) = default;

  /// Adds a weight that is computed and not read. type: f32 or f16.
  void add(Device& device, const std::string& name, Shape shape, std::span<const float> values,
           DataType type = DataType::kF32);

  /// The weights whose names begin so, under what is left of these: to be read where the others
  /// are, and no longer than they are there.
  Weights part(const std::string& beginning) const;

  /// Throws ShapeError when the table has no weight of that name, or when it stands in several
  /// tensors.
  const Tensor& operator[](const std::string& name) const;
  /// The tensors of a weight whose sources may differ in type, rows below rows.
  const std::vector<Tensor>& segments(const std::string& name) const;
  bool has(const std::string& name) const { return tensors_.count(name) > 0; }
  uint64_t bytes() const { return bytes_; }
  /// The first weight that holds NaN or infinity, as the file calls it. Reads all of them back.
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
  std::map<std::string, std::vector<Source>> sources_;  // of weights whose rows stand one by one
  uint64_t bytes_ = 0;
};

/// Makes Weights of what is written to it: a buffer for every weight, filled through the staging
/// ring.
class DeviceWeightSink : public WeightSink {
 public:
  explicit DeviceWeightSink(Device& device) : device_(device), uploader_(device) {}

  void begin(const std::string& name, std::span<const WeightSegment> segments) override;
  void write(size_t segment, uint64_t offset, std::span<const std::byte> bytes) override;
  /// Once, when all weights of the table are written.
  Weights finish(const WeightTable& table, const Checkpoint& checkpoint);

 private:
  Device& device_;
  Uploader uploader_;
  Weights weights_;
  std::span<const Tensor> current_;
};

/// The weights of a model on their way to a device, a part at a time
/// (models/adapters/weights_load.h). Destroying it gives back what is there.
class WeightsLoad {
 public:
  virtual ~WeightsLoad() = default;

  /// As WeightReader::step(). When it gives false, all are on the device.
  virtual bool step(uint64_t bytes) = 0;
  virtual uint64_t done() const = 0;
  virtual uint64_t total() const = 0;
  /// Once step() has given false, once.
  virtual Weights take() = 0;
};

/// A model's table as its weights are read: columns of matrices come in another order than in the
/// file (WeightSpec::any_column_order) but where adapters are merged into them or activations have
/// 16 bits, for neither goes with matrices in blocks.
WeightTable table_to_read(WeightTable table, const ModelOptions& options);
/// Throws as require_memory() where what a model plans does not fit, but for weights of `options`
/// that are there already. bytes: weights included.
void require_model(Device& device, uint64_t bytes, const ModelOptions& options,
                   const std::string& what);

/// Throws DeviceError kOutOfMemory when `bytes` (of `what`, for the message) are above `limit`, or
/// above what the device has available where limit is 0.
void require_memory(Device& device, uint64_t bytes, uint64_t limit, const std::string& what);

}  // namespace mulciber
