#include "models/core/network_weights.h"

#include <fmt/format.h>

#include "mulciber/error.h"
#include "runtime/transfer.h"

namespace mulciber {
// --- Requests ------------------------------------------------------------------------------------

const CheckpointTensor* NetworkWeights::find(const WeightNames& names) const {
  if (!checkpoint_) return nullptr;
  for (const std::string& name : names)
    if (const CheckpointTensor* tensor = checkpoint_->find(name)) return tensor;
  return nullptr;
}

Tensor NetworkWeights::tensor(WeightSpec spec) {
  const std::string name = spec.name;
  const std::vector<Tensor> all = segments(std::move(spec));
  if (all.size() != 1)
    throw ShapeError(name, fmt::format("stands in {} tensors of different types", all.size()), "");
  return all.front();
}

Linear NetworkWeights::linear(const std::string& name, const std::vector<LinearPart>& parts,
                              uint64_t columns, bool bias, bool interleaved) {
  return linear(linear_matrix(name, parts, columns, interleaved),
                bias ? std::optional(linear_bias(name, parts, interleaved)) : std::nullopt);
}

Linear NetworkWeights::linear(WeightSpec matrix, std::optional<WeightSpec> bias) {
  const bool any_order = matrix.any_column_order;
  std::vector<Tensor> matrices = segments(std::move(matrix));
  Linear result;
  if (any_order && matrices.back().type == DataType::kU32) {
    result.column_order = matrices.back();
    matrices.pop_back();
  }
  result.weight = matrices.front();
  result.more_segments.assign(matrices.begin() + 1, matrices.end());
  if (bias) result.bias = tensor(std::move(*bias));
  return result;
}

// --- Without memory ------------------------------------------------------------------------------

Tensor WeightsWithoutMemory::computed(ComputedWeight weight) {
  return planned_tensor(weight.shape);
}

Tensor WeightsWithoutMemory::beside(const std::string&, const Shape& shape, DataType type) {
  return planned_tensor(shape, type);
}

std::vector<float> WeightsWithoutMemory::values(const Tensor& weight) const {
  return std::vector<float>(weight.shape.elements());
}

std::vector<Tensor> DeclaredWeights::segments(WeightSpec spec) {
  const Shape shape = spec.shape;
  table_.push_back(std::move(spec));
  return {planned_tensor(shape)};
}

Tensor DeclaredWeights::computed(ComputedWeight weight) {
  computed_bytes_ += added_weight_bytes(weight.shape);
  return WeightsWithoutMemory::computed(std::move(weight));
}

std::vector<Tensor> PlannedWeights::segments(WeightSpec spec) {
  std::vector<Tensor> tensors;
  for (const WeightSegment& segment : segments_.at(spec.name)) {
    Tensor tensor = planned_tensor(segment.shape, segment.type);
    // The segments of a weight share a buffer (WeightSink::begin).
    if (!tensors.empty()) {
      const BufferView& before = tensors.back().view;
      tensor.view.offset = before.offset + aligned_weight_bytes(before.size);
    }
    tensors.push_back(tensor);
  }
  return tensors;
}

// --- Loaded --------------------------------------------------------------------------------------

std::vector<Tensor> LoadedWeights::segments(WeightSpec spec) {
  return weights_.segments(spec.name);
}

Tensor LoadedWeights::computed(ComputedWeight weight) {
  weights_.add(device_, weight.name, weight.shape, weight.values());
  return weights_[weight.name];
}

Tensor LoadedWeights::beside(const std::string& name, const Shape&, DataType) {
  return weights_[name];
}

std::vector<float> LoadedWeights::values(const Tensor& weight) const {
  return download_as<float>(device_, weight.view);
}

// --- Part ----------------------------------------------------------------------------------------

std::vector<Tensor> PartWeights::segments(WeightSpec spec) {
  spec.name = prefix_ + spec.name;
  return whole_.segments(std::move(spec));
}

Tensor PartWeights::computed(ComputedWeight weight) {
  weight.name = prefix_ + weight.name;
  return whole_.computed(std::move(weight));
}

Tensor PartWeights::beside(const std::string& name, const Shape& shape, DataType type) {
  return whole_.beside(prefix_ + name, shape, type);
}

}  // namespace mulciber
