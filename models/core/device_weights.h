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

namespace mulciber {

class AdapterStack;  // models/adapters/adapter_stack.h
struct ModelOptions;

/// Device memory that Weights::add() takes for a weight of that shape, as weight_bytes() counts
/// what is read from files.
inline uint64_t added_weight_bytes(const Shape& shape, DataType type = DataType::kF32) {
  return aligned_weight_bytes(shape.elements() * size_of(type));
}

/// The weights of a model in device memory. Nothing of them stays on the host.
class Weights {
 public:
  /// Reads the mapped files piece by piece through a bounded staging ring.
  /// family: for messages ("marian"). Throws as weight_bytes(), and DeviceError.
  /// merged: adapters that are added to the weights, each with its scale.
  Weights(Device& device, const WeightTable& table, const Checkpoint& checkpoint,
          const std::string& family, MatrixStorage storage, const WeightProgress& progress = {},
          const AdapterStack* merged = nullptr);
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
  friend class WeightsLoad;
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

/// The weights of a model on their way to a device, a part at a time. Destroying it gives back what
/// is there.
class WeightsLoad {
 public:
  /// checkpoint outlives it. Throws as Weights.
  WeightsLoad(Device& device, WeightTable table, const Checkpoint& checkpoint,
              const std::string& family, const ModelOptions& options);
  ~WeightsLoad();

  /// As WeightReader::step(). When it gives false, all are on the device.
  bool step(uint64_t bytes);
  uint64_t done() const;
  uint64_t total() const;
  /// Once step() has given false, once.
  Weights take();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// Adapters that `options` ask to be merged into weights; null: none. Throws ModelError as
/// AdapterStack.
std::shared_ptr<const AdapterStack> merged_adapters(const WeightTable& table,
                                                    const Checkpoint& checkpoint,
                                                    const ModelOptions& options);
/// A model's table as its weights are read: columns of matrices come in another order than in the
/// file (WeightSpec::any_column_order) but where adapters are merged into them or activations have
/// 16 bits, for neither goes with matrices in blocks.
WeightTable table_to_read(WeightTable table, const ModelOptions& options);
/// The weights that load() of a model begins with: those of `options` where they are there already.
/// Throws as Weights.
Weights weights_of(Device& device, const WeightTable& table, const Checkpoint& checkpoint,
                   const std::string& family, const ModelOptions& options);
/// Throws as require_memory() where what a model plans does not fit, but for weights of `options`
/// that are there already. bytes: weights included.
void require_model(Device& device, uint64_t bytes, const ModelOptions& options,
                   const std::string& what);

/// Throws DeviceError kOutOfMemory when `bytes` (of `what`, for the message) are above `limit`, or
/// above what the device has available where limit is 0.
void require_memory(Device& device, uint64_t bytes, uint64_t limit, const std::string& what);

}  // namespace mulciber
