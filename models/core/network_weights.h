// The weights of a network as the code that builds it asks for them. A network is built by one
// function, whatever becomes of it: with DeclaredWeights it yields the weight table, with
// PlannedWeights a network of types and shapes, with LoadedWeights the network that runs.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "layers/linear.h"
#include "models/core/device_weights.h"
#include "models/core/linear_weights.h"

namespace mulciber {

/// A weight that is computed instead of read, in f32.
struct ComputedWeight {
  std::string name;
  Shape shape;
  /// Computes the elements. Called once the weights of the table are on the device.
  std::function<std::vector<float>()> values;
};

/// Answers the requests of a network. Each weight is requested once; parts of a network that share
/// it share the tensor.
class NetworkWeights {
 public:
  virtual ~NetworkWeights() = default;
  NetworkWeights& operator=(const NetworkWeights&) = delete;

  /// The tensors of a weight of the table, each with the next rows in the type of its file.
  virtual std::vector<Tensor> segments(WeightSpec spec) = 0;
  virtual Tensor computed(ComputedWeight weight) = 0;
  /// A tensor of an adapter, which is neither in the table nor computed by the network.
  virtual Tensor beside(const std::string& name, const Shape& shape, DataType type) = 0;
  /// The elements of a weight in f32; zeros before weights are loaded.
  virtual std::vector<float> values(const Tensor& weight) const = 0;
  /// The checkpoint's tensor of the first of these names that it has; nullptr: it has none.
  const CheckpointTensor* find(const WeightNames& names) const;

  /// A weight that consists of one tensor. Throws ShapeError if it has several.
  Tensor tensor(WeightSpec spec);
  /// A linear layer: NAME.weight, the rows of all parts below one another, and NAME.bias if `bias`.
  /// interleaved: row 0 of every part, then row 1 of every part, and so on.
  Linear linear(const std::string& name, const std::vector<LinearPart>& parts, uint64_t columns,
                bool bias, bool interleaved = false);
  /// A linear layer of these two weights.
  Linear linear(WeightSpec matrix, std::optional<WeightSpec> bias);

 protected:
  /// checkpoint: for find(); nullptr: finds nothing. It outlives this object.
  explicit NetworkWeights(const Checkpoint* checkpoint) : checkpoint_(checkpoint) {}
  NetworkWeights(const NetworkWeights&) = default;

 private:
  const Checkpoint* checkpoint_;
};

/// Returns tensors of types and shapes, without memory.
class WeightsWithoutMemory : public NetworkWeights {
 public:
  Tensor computed(ComputedWeight weight) override;
  Tensor beside(const std::string& name, const Shape& shape, DataType type) override;
  std::vector<float> values(const Tensor& weight) const override;

 protected:
  using NetworkWeights::NetworkWeights;
};

/// Collects what a network asks for.
class DeclaredWeights final : public WeightsWithoutMemory {
 public:
  /// checkpoint: see NetworkWeights.
  explicit DeclaredWeights(const Checkpoint* checkpoint = nullptr)
      : WeightsWithoutMemory(checkpoint) {}

  std::vector<Tensor> segments(WeightSpec spec) override;
  Tensor computed(ComputedWeight weight) override;

  /// Names, shapes and source names of every weight, in the order of the requests.
  const WeightTable& table() const& { return table_; }
  WeightTable table() && { return std::move(table_); }
  /// Device memory that LoadedWeights allocates for computed weights.
  uint64_t computed_bytes() const { return computed_bytes_; }

 private:
  WeightTable table_;
  uint64_t computed_bytes_ = 0;
};

/// Gives weights the types that files have, to plan with before they are loaded.
class PlannedWeights final : public WeightsWithoutMemory {
 public:
  /// The segments of each weight of the table, by name (weight_segments()).
  using Segments = std::map<std::string, std::vector<WeightSegment>>;

  /// segments: outlives this object.
  explicit PlannedWeights(const Segments& segments)
      : WeightsWithoutMemory(nullptr), segments_(segments) {}

  std::vector<Tensor> segments(WeightSpec spec) override;

 private:
  const Segments& segments_;
};

/// Weights on a device. Computes and uploads computed weights when they are requested.
class LoadedWeights final : public NetworkWeights {
 public:
  /// The arguments outlive this object. weights: of the table that the same network declared, and
  /// of its adapters. checkpoint: see NetworkWeights.
  LoadedWeights(Device& device, Weights& weights, const Checkpoint* checkpoint = nullptr)
      : NetworkWeights(checkpoint), device_(device), weights_(weights) {}

  std::vector<Tensor> segments(WeightSpec spec) override;
  Tensor computed(ComputedWeight weight) override;
  Tensor beside(const std::string& name, const Shape& shape, DataType type) override;
  std::vector<float> values(const Tensor& weight) const override;

 private:
  Device& device_;
  Weights& weights_;
};

/// The weights of a network that is a part of another one, whose names begin with a prefix.
class PartWeights final : public NetworkWeights {
 public:
  /// whole: outlives this object. prefix: "vision.".
  PartWeights(NetworkWeights& whole, std::string prefix)
      : NetworkWeights(whole), whole_(whole), prefix_(std::move(prefix)) {}

  std::vector<Tensor> segments(WeightSpec spec) override;
  Tensor computed(ComputedWeight weight) override;
  Tensor beside(const std::string& name, const Shape& shape, DataType type) override;
  std::vector<float> values(const Tensor& weight) const override { return whole_.values(weight); }

 private:
  NetworkWeights& whole_;
  std::string prefix_;
};

/// The weights that a network of this configuration asks for.
template <typename Network, typename Config>
DeclaredWeights declared_weights(const Config& config, const Checkpoint& checkpoint) {
  DeclaredWeights weights(&checkpoint);
  const Network network(config, weights, DataType::kF32);
  return weights;
}

/// The network of this configuration, with weights that outlive it.
template <typename Network, typename Config>
Network loaded_network(Device& device, Weights& weights, const Checkpoint& checkpoint,
                       const Config& config, DataType activations) {
  LoadedWeights loaded(device, weights, &checkpoint);
  return Network(config, loaded, activations);
}

}  // namespace mulciber
