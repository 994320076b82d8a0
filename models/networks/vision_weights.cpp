// The weights of vision transformers and the text encoders trained with them, as their constructors
// ask for them.
#include <cmath>

#include <fmt/format.h>

#include "models/networks/vision_network.h"

namespace mulciber {
namespace {

/// Asks for the weights of a tower and makes its parts of them.
class TowerBuilder {
 public:
  TowerBuilder(const TowerConfig& tower, NetworkWeights& weights)
      : tower_(tower), weights_(weights) {}

  WeightNames named(const std::string& part) const {
    return with_prefixes(tower_.names.prefixes, part);
  }

  Tensor tensor(const std::string& name, WeightRole role, const Shape& shape,
                const WeightNames& names, const Shape& in_file) const {
    return weights_.tensor({name, role, shape, {{names, in_file}}});
  }

  Norm norm(const std::string& name, const WeightNames& parts) const {
    const uint64_t D = tower_.width;
    const Tensor weight = weights_.tensor(
        {name,
         WeightRole::kVector,
         {2, D},
         {{with_ending(parts, ".weight"), {D}}, {with_ending(parts, ".bias"), {D}}}});
    return {weight, tower_.norm_epsilon};
  }

  Linear linear(const std::string& name, const WeightNames& names, uint64_t rows, uint64_t columns,
                bool bias = true) const {
    return weights_.linear(name, {LinearPart{names, rows}}, columns, bias);
  }

  /// Rows [first, first + rows) of a matrix of three projections, and of its bias.
  Linear part_of_three(const std::string& name, const WeightNames& names, uint64_t first,
                       uint64_t rows) const {
    const uint64_t D = tower_.width;
    const auto part = [&](const char* ending, const Shape& shape) -> WeightSource {
      return {with_ending(names, ending), shape, SourceForm::kAsInFile, 3 * D, first};
    };
    return weights_.linear(
        WeightSpec{name + ".weight", WeightRole::kMatrix, {rows, D}, {part("_weight", {rows, D})}},
        WeightSpec{name + ".bias", WeightRole::kVector, {rows}, {part("_bias", {rows})}});
  }

  HeadSizes head_sizes() const { return {tower_.heads, tower_.head_size(), tower_.head_size()}; }

  Encoder stack() const {
    Encoder encoder;
    for (uint32_t i = 0; i < tower_.layers; ++i) encoder.layers.push_back(layer(i));
    if (tower_.names.final_norm)
      encoder.final_norm = norm("final_norm", named(tower_.names.final_norm));
    return encoder;
  }

 private:
  WeightNames in_layer(uint32_t i, const char* part) const {
    return part ? named(fmt::format("{}{}.{}", tower_.names.layer, i, part)) : WeightNames();
  }

  /// A projection whose rows are multiplied with LayerScale factors.
  Linear scaled_linear(const std::string& name, const WeightNames& part, uint64_t rows,
                       uint64_t columns, const WeightNames& scales) const {
    WeightSpec matrix = linear_matrix(name, {LinearPart{part, rows}}, columns);
    WeightSpec bias = linear_bias(name, {LinearPart{part, rows}});
    matrix.sources.front().row_scales = bias.sources.front().row_scales = scales;
    return weights_.linear(std::move(matrix), std::move(bias));
  }

  EncoderLayer layer(uint32_t i) const {
    const TowerNames& names = tower_.names;
    const std::string name = fmt::format("layers.{}.", i);
    EncoderLayer result = {.norms = NormPlacement::kBefore};
    result.self_attention_norm = norm(name + "attention_norm", in_layer(i, names.attention_norm));
    result.self_attention = attention(i, name);
    result.feed_forward_norm =
        norm(name + "feed_forward_norm", in_layer(i, names.feed_forward_norm));
    result.feed_forward = feed_forward(i, name);
    return result;
  }

  SelfAttention attention(uint32_t i, const std::string& name) const {
    const TowerNames& names = tower_.names;
    const uint64_t D = tower_.width;
    return {.sizes = head_sizes(),
            .qkv = weights_.linear(
                name + "qkv",
                {{in_layer(i, names.q), D}, {in_layer(i, names.k), D}, {in_layer(i, names.v), D}},
                D, tower_.attention_bias),
            .out = scaled_linear(name + "out", in_layer(i, names.attention_out), D, D,
                                 in_layer(i, names.attention_scale))};
  }

  FeedForward feed_forward(uint32_t i, const std::string& name) const {
    const TowerNames& names = tower_.names;
    const uint64_t D = tower_.width, F = tower_.hidden;
    const WeightNames file = in_layer(i, names.up);
    std::vector<LinearPart> up = {{file, F}};
    if (tower_.gated) up = {{file, F, 2 * F, 0}, {file, F, 2 * F, F}};
    return {.up = weights_.linear(name + "up", up, D, true, tower_.gated),
            .down = scaled_linear(name + "down", in_layer(i, names.down), D, F,
                                  in_layer(i, names.feed_forward_scale)),
            .activation = tower_.activation,
            .gated = tower_.gated};
  }

  const TowerConfig& tower_;
  NetworkWeights& weights_;
};

PatchEmbedding patch_embedding(const VisionTower& tower, const TowerBuilder& parts) {
  const uint64_t D = tower.width, C = tower.channels, P = tower.patch, T = tower.tokens();
  const bool in_batch = tower.positions_in_batch;
  const WeightNames patches = parts.named(tower.patches);
  PatchEmbedding result = {.patches = parts.tensor("patches", WeightRole::kMatrix, {D, C * P * P},
                                                   with_ending(patches, ".weight"), {D, C, P, P})};
  if (tower.patch_bias)
    result.bias =
        parts.tensor("patches.bias", WeightRole::kVector, {D}, with_ending(patches, ".bias"), {D});
  for (size_t i = 0; i < tower.first_tokens.size(); ++i)
    result.first_tokens.push_back(
        parts.tensor(fmt::format("first_token.{}", i), WeightRole::kVector, {D},
                     parts.named(tower.first_tokens[i]), in_batch ? Shape{1, 1, D} : Shape{D}));
  result.positions =
      parts.tensor("positions", WeightRole::kVector, {T, D}, parts.named(tower.positions),
                   in_batch ? Shape{1, T, D} : Shape{T, D});
  if (tower.embedding_norm)
    result.norm = parts.norm("embedding_norm", parts.named(tower.embedding_norm));
  return result;
}

AttentionPooling attention_pooling(const VisionTower& tower, const TowerBuilder& parts) {
  const uint64_t D = tower.width, F = tower.hidden;
  const auto file = [&](const char* part) {
    return parts.named(fmt::format("{}.{}", tower.attention_head, part));
  };
  const WeightNames projections = file("attention.in_proj");
  return {
      .probe = parts.tensor("head.probe", WeightRole::kVector, {1, D}, file("probe"), {1, 1, D}),
      .attention = {.sizes = parts.head_sizes(),
                    .query = parts.part_of_three("head.query", projections, 0, D),
                    .key_value = parts.part_of_three("head.key_value", projections, D, 2 * D),
                    .out = parts.linear("head.out", file("attention.out_proj"), D, D)},
      .norm = parts.norm("head.norm", file("layernorm")),
      .feed_forward = {.up = parts.linear("head.up", file("mlp.fc1"), F, D),
                       .down = parts.linear("head.down", file("mlp.fc2"), D, F),
                       .activation = tower.activation}};
}

/// A number of the file, which holds a scalar or a list of one value.
double scalar_weight(const char* name, NetworkWeights& weights) {
  const WeightNames names = {name};
  const CheckpointTensor* found = weights.find(names);
  const bool scalar = found && found->shape.empty();
  const Tensor tensor =
      weights.tensor({name, WeightRole::kVector, {1}, {{names, scalar ? Shape{} : Shape{1}}}});
  return weights.values(tensor).at(0);
}

}  // namespace

VisionTowerNetwork::VisionTowerNetwork(const VisionConfig& config, NetworkWeights& weights,
                                       DataType activations)
    : tower_(config.tower), head_(config.head), activations_(activations) {
  const TowerBuilder parts(tower_, weights);
  const uint64_t D = tower_.width, labels = config.labels.size();
  embedding_ = patch_embedding(tower_, parts);
  encoder_ = parts.stack();
  if (tower_.pooled_norm) pooled_norm_ = parts.norm("pooled_norm", parts.named(tower_.pooled_norm));
  if (tower_.attention_head) attention_pooling_ = attention_pooling(tower_, parts);
  if (tower_.pooler && head_ == VisionHead::kNone)
    if (const WeightNames pooler = parts.named(tower_.pooler);
        weights.find(with_ending(pooler, ".weight")))
      pooler_ = parts.linear("pooler", pooler, D, D);
  if (config.projection > 0)
    projection_ = parts.linear("projection", {"visual_projection"}, config.projection, D, false);
  if (head_ == VisionHead::kNone) return;
  const uint64_t read = head_ == VisionHead::kClassAndMean ? 2 * D : D;
  classifier_ = parts.linear("classifier", {config.classifier}, labels, read);
  if (config.teacher) teacher_ = parts.linear("teacher", {config.teacher}, labels, D);
}

TextTowerNetwork::TextTowerNetwork(const TextTower& tower, uint32_t projection,
                                   NetworkWeights& weights, DataType activations)
    : tower_(tower), activations_(activations) {
  const TowerBuilder parts(tower_, weights);
  const uint64_t D = tower.width;
  const auto table = [&](const char* name, const char* part, uint64_t rows, WeightRole role) {
    return parts.tensor(name, role, {rows, D}, with_ending(parts.named(part), ".weight"),
                        {rows, D});
  };
  embedding_.table = table("words", tower.words, tower.vocabulary, WeightRole::kMatrix);
  embedding_.positions = table("positions", tower.positions, tower.context, WeightRole::kVector);
  encoder_ = parts.stack();
  encoder_.causal = tower.causal;
  if (tower.head) head_ = parts.linear("head", parts.named(tower.head), D, D);
  if (projection > 0)
    projection_ = parts.linear("projection", {"text_projection"}, projection, D, false);
}

VisionNetwork::VisionNetwork(const VisionConfig& config, NetworkWeights& weights,
                             DataType activations)
    : tower(config, weights, activations) {
  if (!config.texts) return;
  PartWeights text_weights(weights, "text.");
  texts.emplace(*config.texts, config.projection, text_weights, activations);
  logit_scale = std::exp(scalar_weight("logit_scale", weights));
  if (config.logit_bias) logit_bias = scalar_weight("logit_bias", weights);
}

}  // namespace mulciber
