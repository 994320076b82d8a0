// The weights of encoder-only networks, as their constructor asks for them.
#include <fmt/format.h>

#include "models/networks/text_encoder_network.h"

namespace mulciber {
namespace {

/// Asks for the weights of a network and makes its parts of them.
class TextEncoderBuilder {
 public:
  TextEncoderBuilder(const EncoderConfig& config, NetworkWeights& weights)
      : config_(config), names_(config.names), weights_(weights) {}

  WeightNames in_stack(const std::string& part) const {
    return with_prefixes(names_.prefixes, part);
  }

  Linear linear(const std::string& name, const WeightNames& names, uint64_t rows, uint64_t columns,
                bool bias = true) const {
    return weights_.linear(name, {LinearPart{names, rows}}, columns, bias);
  }

  /// Checkpoints converted from TensorFlow name gain and bias gamma and beta.
  Norm norm(const std::string& name, const WeightNames& parts, uint64_t width) const {
    const auto either = [&](const char* now, const char* before) {
      WeightNames names = with_ending(parts, now);
      for (std::string& older : with_ending(parts, before)) names.push_back(std::move(older));
      return names;
    };
    WeightSource bias = {{}, {width}, SourceForm::kZeros};
    if (config_.norm_bias) bias = {either(".bias", ".beta"), {width}};
    const Tensor weight = weights_.tensor(
        {name, WeightRole::kVector, {2, width}, {{either(".weight", ".gamma"), {width}}, bias}});
    return {weight, config_.norm_epsilon};
  }

  SegmentEmbedding embedding() const {
    const EncoderEmbedding& of = config_.embedding;
    const uint64_t E = of.columns, D = config_.width;
    SegmentEmbedding result = {
        .words = matrix("words", WeightRole::kMatrix, names_.words, config_.vocabulary, E)};
    if (of.positions != EncoderPositions::kNone)
      result.positions =
          matrix("positions", WeightRole::kVector, names_.positions, of.position_rows, E);
    if (of.types > 0)
      result.types = matrix("types", WeightRole::kVector, names_.types, of.types, E);
    result.norm = norm("embedding_norm", in_stack(names_.embedding_norm), E);
    if (E != D) result.project = linear("project", in_stack(names_.project), D, E);
    return result;
  }

  /// Vectors of distances, (2 * span, D); needs disentangled attention.
  Tensor distances() const {
    return matrix("distances", WeightRole::kVector, names_.distances,
                  2 * uint64_t{config_.disentangled->span}, config_.width);
  }

  /// Result of t5_bias(); needs a relative bias.
  std::vector<float> relative_bias() const {
    const T5Buckets& of = *config_.relative_bias;
    const Tensor table = matrix("relative_bias", WeightRole::kVector, names_.relative_bias,
                                of.buckets, config_.heads);
    return t5_bias(weights_.values(table), config_.heads, of);
  }

  std::vector<EncoderLayer> layers() const {
    const std::vector<Tensor> angles = rotary_angles();
    std::vector<EncoderLayer> distinct, all;
    for (uint32_t i = 0; i < config_.layer_weights(); ++i) distinct.push_back(layer(i));
    for (const EncoderLayerConfig& of : config_.layers) {
      all.push_back(distinct[of.weights]);
      SelfAttention& attention = all.back().self_attention;
      attention.window = of.window;
      if (!of.rope) continue;
      const RopeConfig& rope = config_.ropes[*of.rope];
      attention.rotation = Rotation{.angles = angles[*of.rope],
                                    .rotated = rope.rotated,
                                    .interleaved = rope.pairs == RotaryPairs::kNeighbours};
    }
    return all;
  }

 private:
  WeightNames in_layer(uint32_t i, const char* part) const {
    return in_stack(fmt::format("{}{}.{}", names_.layer, i, part));
  }

  Tensor matrix(const std::string& name, WeightRole role, const char* part, uint64_t rows,
                uint64_t columns) const {
    const Shape shape = {rows, columns};
    return weights_.tensor({name, role, shape, {{with_ending(in_stack(part), ".weight"), shape}}});
  }

  std::vector<Tensor> rotary_angles() const {
    std::vector<Tensor> tables;
    for (const RopeConfig& rope : config_.ropes)
      tables.push_back(weights_.computed(
          {fmt::format("rope.{}", tables.size()), {config_.context, rope.rotated}, [&] {
             return rope_angles(config_.context, rope.rotated, rope.base, rope.scaling);
           }}));
    return tables;
  }

  /// The layer of weights `i`, without what may differ among layers that share them.
  EncoderLayer layer(uint32_t i) const {
    const uint64_t D = config_.width;
    const std::string name = fmt::format("layers.{}.", i);
    EncoderLayer result = {.self_attention = attention(i, name), .norms = config_.norms};
    if (config_.layers[i].attention_norm)
      result.self_attention_norm =
          norm(name + "attention_norm", in_layer(i, names_.attention_norm), D);
    result.feed_forward = feed_forward(i, name);
    result.feed_forward_norm =
        norm(name + "feed_forward_norm", in_layer(i, names_.feed_forward_norm), D);
    return result;
  }

  SelfAttention attention(uint32_t i, const std::string& name) const {
    const uint64_t D = config_.width;
    const uint32_t head_size = config_.head_size();
    std::vector<LinearPart> qkv;
    if (names_.qkv)
      qkv.push_back({in_layer(i, names_.qkv), 3 * D});
    else
      for (const char* part : {names_.q, names_.k, names_.v}) qkv.push_back({in_layer(i, part), D});
    return {.sizes = {config_.heads, head_size, head_size},
            .qkv = weights_.linear(name + "qkv", qkv, D, config_.attention_bias),
            .out = linear(name + "out", in_layer(i, names_.attention_out), D, D,
                          config_.attention_bias)};
  }

  FeedForward feed_forward(uint32_t i, const std::string& name) const {
    const uint64_t D = config_.width, F = config_.hidden;
    const bool bias = config_.feed_forward_bias;
    std::vector<LinearPart> up;
    if (!config_.gated) {
      up = {{in_layer(i, names_.up), F}};
    } else if (names_.gate_up) {
      const WeightNames both = in_layer(i, names_.gate_up);
      up = {{both, F, 2 * F, 0}, {both, F, 2 * F, F}};
    } else {
      up = {{in_layer(i, names_.gate), F}, {in_layer(i, names_.up), F}};
    }
    return {.up = weights_.linear(name + "up", up, D, bias, config_.gated),
            .down = linear(name + "down", in_layer(i, names_.down), D, F, bias),
            .activation = config_.activation,
            .gated = config_.gated};
  }

  const EncoderConfig& config_;
  const EncoderNames& names_;
  NetworkWeights& weights_;
};

}  // namespace

TextEncoderNetwork::TextEncoderNetwork(const EncoderConfig& config, NetworkWeights& weights,
                                       DataType activations)
    : config_(config), activations_(activations) {
  const TextEncoderBuilder parts(config, weights);
  const EncoderNames& names = config.names;
  const uint64_t D = config.width;
  embedding_ = parts.embedding();
  if (config.disentangled) {
    distances_ = parts.distances();
    if (config.disentangled->norm)
      distances_norm_ = parts.norm("distances_norm", parts.in_stack(names.distances_norm), D);
  }
  if (config.relative_bias) relative_bias_ = parts.relative_bias();
  encoder_.layers = parts.layers();
  if (names.final_norm)
    encoder_.final_norm = parts.norm("final_norm", parts.in_stack(names.final_norm), D);
  if (config.task == EncoderTask::kAnswer) spans_ = parts.linear("spans", {"qa_outputs"}, 2, D);
  if (config.task == EncoderTask::kNone && names.pooler)
    if (const WeightNames pooler = parts.in_stack(names.pooler);
        weights.find(with_ending(pooler, ".weight")))
      pooler_ = parts.linear("pooler", pooler, D, D);
  if (config.task != EncoderTask::kClassify) return;
  const EncoderHead& of = config.head;
  head_.emplace();
  if (of.dense)
    head_->dense = parts.linear(
        "head.dense", of.dense_in_stack ? parts.in_stack(of.dense) : WeightNames{of.dense}, D, D,
        of.dense_bias);
  if (of.norm) head_->norm = parts.norm("head.norm", {of.norm}, D);
  head_->output = parts.linear("head.output", {of.output}, config.labels.size(), D, of.output_bias);
}

}  // namespace mulciber
