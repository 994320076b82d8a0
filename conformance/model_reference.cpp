#include "conformance/model_reference.h"

#include <fmt/format.h>

#include <cmath>

#include "checkpoints/tensor_values.h"
#include "conformance/bounds.h"
#include "layers/embedding.h"
#include "mulciber/error.h"

namespace mulciber::conformance {

ModelReference::ModelReference(const TranslationFiles& files, const Arithmetic& arithmetic)
    : shape_(files.shape()), arithmetic_(arithmetic) {
  const Checkpoint& checkpoint = files.checkpoint();
  embedding_ =
      add(checkpoint, {"model.shared.weight"}, DataType::kF16, {shape_.vocabulary, shape_.width});
  output_ = {embedding_, weights_.size()};
  if (checkpoint.find("final_logits_bias")) {
    add(checkpoint, {"final_logits_bias"}, DataType::kF32, {shape_.vocabulary});
  } else {
    weights_.push_back(
        {{shape_.vocabulary}, DataType::kF32, std::vector<double>(shape_.vocabulary), {}});
  }
  for (uint32_t i = 0; i < shape_.encoder.layers; ++i) {
    encoder_.push_back(layer(checkpoint, fmt::format("model.encoder.layers.{}.", i), false));
  }
  for (uint32_t i = 0; i < shape_.decoder.layers; ++i) {
    decoder_.push_back(layer(checkpoint, fmt::format("model.decoder.layers.{}.", i), true));
  }
}

size_t ModelReference::add(const Checkpoint& checkpoint, const std::vector<std::string>& names,
                           DataType type, Shape shape) {
  CpuTensor tensor{shape, type, {}, {}};
  for (const std::string& name : names) {
    const CheckpointTensor& part = checkpoint.at(name);
    const std::vector<float> values = read_floats(part, 0, part.elements());
    tensor.values.insert(tensor.values.end(), values.begin(), values.end());
    if (type == DataType::kF16 && part.type != CheckpointType::kF16) tensor.type = DataType::kF32;
  }
  if (tensor.values.size() != shape.elements()) {
    throw ModelError(checkpoint.path().string(),
                     fmt::format("weight `{}` has not the shape expected", names[0]), "");
  }
  weights_.push_back(std::move(tensor));
  return weights_.size() - 1;
}

LayerPart ModelReference::layer(const Checkpoint& checkpoint, const std::string& name,
                                bool decoder) {
  const TransformerShape::Stack& stack = decoder ? shape_.decoder : shape_.encoder;
  const uint64_t D = shape_.width, F = stack.feed_forward;
  const auto linear = [&](const std::string& prefix, const std::vector<std::string>& parts,
                          uint64_t n, uint64_t k) {
    std::vector<std::string> matrices, biases;
    for (const std::string& part : parts) {
      matrices.push_back(name + prefix + part + ".weight");
      biases.push_back(name + prefix + part + ".bias");
    }
    const size_t weight = add(checkpoint, matrices, DataType::kF16, {n, k});
    return LinearPart{weight, add(checkpoint, biases, DataType::kF32, {n})};
  };
  const auto norm = [&](const std::string& part) {
    return NormPart{
        add(checkpoint, {name + part + ".weight", name + part + ".bias"}, DataType::kF32, {2, D}),
        shape_.norm_epsilon};
  };
  const uint32_t head = shape_.width / stack.heads;
  const HeadSizes sizes{stack.heads, head, head};
  LayerPart part;
  part.norms = shape_.norms;
  part.self.sizes = sizes;
  part.self.qkv = linear("self_attn.", {"q_proj", "k_proj", "v_proj"}, 3 * D, D);
  part.self.out = linear("self_attn.", {"out_proj"}, D, D);
  part.self_norm = norm("self_attn_layer_norm");
  if (decoder) {
    part.cross.emplace();
    part.cross->sizes = sizes;
    part.cross->query = linear("encoder_attn.", {"q_proj"}, D, D);
    part.cross->key_value = linear("encoder_attn.", {"k_proj", "v_proj"}, 2 * D, D);
    part.cross->out = linear("encoder_attn.", {"out_proj"}, D, D);
    part.cross_norm = norm("encoder_attn_layer_norm");
  }
  part.feed_forward.up = linear("", {"fc1"}, F, D);
  part.feed_forward.down = linear("", {"fc2"}, D, F);
  part.feed_forward.activation = shape_.activation;
  part.feed_forward_norm = norm("final_layer_norm");
  return part;
}

CpuTensor ModelReference::embed(std::span<const uint32_t> ids) const {
  const uint64_t width = shape_.width;
  const auto scale =
      static_cast<float>(shape_.scale_embedding ? std::sqrt(static_cast<float>(width)) : 1.0f);
  // Positions are f32 tables, like on the device.
  const std::vector<float> positions =
      sinusoidal_positions(static_cast<uint32_t>(ids.size()), shape_.width);
  CpuTensor x{{1, ids.size(), width}, DataType::kF32, {}, {}};
  for (size_t i = 0; i < ids.size(); ++i) {
    for (uint64_t d = 0; d < width; ++d) {
      const double value = weights_[embedding_].values[ids[i] * width + d];
      append(x, Bounded(value) * Bounded(scale) + Bounded(positions[i * width + d]));
    }
  }
  return x;
}

CpuTensor ModelReference::encode(std::span<const uint32_t> source) const {
  const BlockReference reference(weights_, arithmetic_);
  CpuTensor x = embed(source);
  for (const LayerPart& part : encoder_) x = reference.layer(part, x, {});
  return x;
}

CpuTensor ModelReference::logits(const CpuTensor& memory, std::span<const uint32_t> target) const {
  const BlockReference reference(weights_, arithmetic_);
  BlockView causal;
  causal.causal = true;
  CpuTensor x = embed(target);
  for (const LayerPart& part : decoder_) {
    const CpuTensor projected = reference.linear(part.cross->key_value, memory);
    const BlockView all;
    x = reference.layer(part, x, causal, nullptr, &projected, &all);
  }
  return reference.linear(output_, x);
}

}  // namespace mulciber::conformance
