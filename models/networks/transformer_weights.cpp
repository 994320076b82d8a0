// The weight table of encoder-decoder Transformers, and building the network.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "models/core/linear_weights.h"
#include "models/networks/transformer_network.h"

namespace mulciber {
namespace {

class Seq2SeqTableWriter {
 public:
  Seq2SeqTableWriter(const EncoderDecoderConfig& config, const Checkpoint& checkpoint)
      : config_(config), names_(config.names), checkpoint_(checkpoint) {}

  WeightTable write() {
    const uint64_t source = config_.source_vocabulary, target = config_.target_vocabulary;
    const WeightNames output = {"lm_head.weight"};
    if (config_.embedding.shared) {
      WeightNames any = tensor(names_.shared);
      for (const char* part : {names_.encoder.embedding, names_.decoder.embedding})
        for (std::string& name : tensor(part)) any.push_back(std::move(name));
      if (config_.output.tied) any.push_back(output.front());
      matrix("embedding", any, target);
    } else {
      matrix("encoder.embedding", tensor(names_.encoder.embedding), source);
      WeightNames any = tensor(names_.decoder.embedding);
      if (config_.output.tied) any.push_back(output.front());
      matrix("decoder.embedding", any, target);
    }
    stack("encoder.", config_.encoder, names_.encoder);
    stack("decoder.", config_.decoder, names_.decoder);
    if (!config_.output.tied) matrix("output.weight", output, target);
    // Among all known models, only this tensor has an extra dimension.
    if (checkpoint_.find("final_logits_bias"))
      table_.push_back(
          {"output.bias", WeightRole::kVector, {target}, {{{"final_logits_bias"}, {1, target}}}});
    return std::move(table_);
  }

 private:
  WeightNames behind_prefixes(const std::string& part) const {
    WeightNames names;
    for (const char* prefix : names_.prefixes) names.push_back(prefix + part);
    return names;
  }
  WeightNames tensor(const std::string& part) const {
    return with_ending(behind_prefixes(part), ".weight");
  }

  void matrix(const std::string& name, const WeightNames& names, uint64_t rows) {
    const Shape shape = {rows, config_.width};
    table_.push_back({name, WeightRole::kMatrix, shape, {{names, shape}}});
  }

  void norm(const std::string& name, const std::string& part) {
    const uint64_t D = config_.width;
    WeightSpec spec = {name, WeightRole::kVector, {D}, {{tensor(part), {D}}}};
    if (config_.norms.kind == NormKind::kLayer) {
      spec.shape = {2, D};
      spec.sources.push_back({with_ending(behind_prefixes(part), ".bias"), {D}});
    }
    table_.push_back(std::move(spec));
  }

  void stack(const std::string& name, const Seq2SeqStack& stack, const Seq2SeqStackNames& names) {
    for (uint32_t i = 0; i < stack.layers; ++i)
      layer(fmt::format("{}layers.{}.", name, i), fmt::format("{}{}.", names.layer, i), stack,
            names);
    const uint64_t D = config_.width, first = config_.embedding.first_position;
    if (config_.embedding.norm) norm(name + "embedding_norm", names.embedding_norm);
    if (config_.norms.final_norm) norm(name + "final_norm", names.final_norm);
    if (config_.embedding.positions == Seq2SeqPositions::kLearned)
      table_.push_back({name + "positions",
                        WeightRole::kVector,
                        {config_.context, D},
                        {{tensor(names.positions),
                          {config_.context, D},
                          SourceForm::kAsInFile,
                          config_.context + first,
                          first}}});
    if (config_.attention.relative_bias) {
      const Shape shape = {config_.attention.relative_bias->buckets, stack.heads};
      table_.push_back({name + "relative_bias",
                        WeightRole::kVector,
                        shape,
                        {{tensor(names.relative_bias), shape}}});
    }
  }

  /// file: prefix of the layer's names in files.
  void layer(const std::string& name, const std::string& file, const Seq2SeqStack& stack,
             const Seq2SeqStackNames& names) {
    const uint64_t D = config_.width, H = stack.head_columns(), F = stack.hidden;
    const bool bias = config_.attention.bias;
    const auto part = [&](const char* of, uint64_t rows) {
      return LinearPart{behind_prefixes(file + of), rows};
    };
    const auto linear = [&](const char* of, const std::vector<LinearPart>& parts, uint64_t columns,
                            bool with_bias, bool interleaved = false) {
      add_linear(table_, name + of, parts, columns, with_bias, interleaved);
    };
    linear("self_attn.qkv", {part(names.q, H), part(names.k, H), part(names.v, H)}, D, bias);
    linear("self_attn.out", {part(names.out, D)}, H, bias);
    norm(name + "self_attn_norm", file + names.attention_norm);
    if (names.cross_q) {
      linear("cross_attn.query", {part(names.cross_q, H)}, D, bias);
      linear("cross_attn.key_value", {part(names.cross_k, H), part(names.cross_v, H)}, D, bias);
      linear("cross_attn.out", {part(names.cross_out, D)}, H, bias);
      norm(name + "cross_attn_norm", file + names.cross_norm);
    }
    std::vector<LinearPart> up = {part(names.up, F)};
    if (config_.feed_forward.gated) up.insert(up.begin(), part(names.gate, F));
    linear("ffn.fc1", up, D, config_.feed_forward.bias, config_.feed_forward.gated);
    linear("ffn.fc2", {part(names.down, D)}, F, config_.feed_forward.bias);
    norm(name + "ffn_norm", file + names.feed_forward_norm);
  }

  const EncoderDecoderConfig& config_;
  const Seq2SeqNames& names_;
  const Checkpoint& checkpoint_;
  WeightTable table_;
};

std::vector<float> vector_values(Device& device, const Tensor& weight) {
  BufferView view = weight.view;
  view.size = weight.bytes();
  return download_as<float>(device, view);
}

class TransformerBuilder {
 public:
  TransformerBuilder(const EncoderDecoderConfig& config, const Weights& weights)
      : config_(config), weights_(weights) {}

  std::unique_ptr<TransformerNetwork> build(Device& device, DataType activations) const {
    auto result = std::make_unique<TransformerNetwork>();
    TransformerNetwork& network = *result;
    network.activations = activations;
    network.source_vocabulary = config_.source_vocabulary;
    network.target_vocabulary = config_.target_vocabulary;
    network.width = config_.width;
    network.widest_hidden = std::max(config_.encoder.hidden, config_.decoder.hidden) *
                            (config_.feed_forward.gated ? 2 : 1);
    network.context = config_.context;
    network.padding_has_states = !config_.embedding.skips_padding;

    network.source_embedding = embedding("encoder.");
    for (uint32_t i = 0; i < config_.encoder.layers; ++i)
      network.encoder.layers.push_back(
          layer<EncoderLayer>(fmt::format("encoder.layers.{}.", i), config_.encoder));
    network.target_embedding = embedding("decoder.");
    for (uint32_t i = 0; i < config_.decoder.layers; ++i) {
      const std::string name = fmt::format("decoder.layers.{}.", i);
      DecoderLayer made = layer<DecoderLayer>(name, config_.decoder);
      made.cross_attention = cross_attention(name + "cross_attn.", config_.decoder);
      made.cross_attention_norm = norm(name + "cross_attn_norm");
      network.decoder.layers.push_back(std::move(made));
    }
    if (config_.norms.final_norm) {
      network.encoder.final_norm = norm("encoder.final_norm");
      network.decoder.final_norm = norm("decoder.final_norm");
    }
    if (weights_.has("decoder.output_norm")) {
      network.decoder.final_norm.reset();
      network.scaled_norm = {norm("decoder.final_norm"), norm("decoder.output_norm")};
    }
    network.encoder_bias = relative_bias(device, "encoder.", config_.encoder, true);
    network.decoder_bias = relative_bias(device, "decoder.", config_.decoder, false);

    const std::string table = config_.embedding.shared ? "embedding" : "decoder.embedding";
    network.output.weight = weights_[config_.output.tied ? table : "output.weight"];  // (V, D)
    if (weights_.has("output.bias")) network.output.bias = weights_["output.bias"];   // (V)
    return result;
  }

 private:
  Linear linear(const std::string& name) const {
    const std::vector<Tensor>& segments = weights_.segments(name + ".weight");
    Linear result = {.weight = segments.front()};
    if (weights_.has(name + ".bias")) result.bias = weights_[name + ".bias"];
    result.more_segments.assign(segments.begin() + 1, segments.end());
    return result;
  }

  Norm norm(const std::string& name) const {
    return {weights_[name], config_.norms.epsilon, config_.norms.kind};
  }

  TokenEmbedding embedding(const std::string& stack) const {
    const Seq2SeqEmbedding& of = config_.embedding;
    TokenEmbedding result = {.table = weights_[of.shared ? "embedding" : stack + "embedding"],
                             .scale = of.scale};  // (V, D)
    if (of.positions == Seq2SeqPositions::kSinusoids) result.positions = weights_["positions"];
    if (of.positions == Seq2SeqPositions::kLearned)
      result.positions = weights_[stack + "positions"];  // (P, D)
    if (of.norm) result.norm = norm(stack + "embedding_norm");
    return result;
  }

  static HeadSizes sizes(const Seq2SeqStack& stack) {
    return {stack.heads, stack.head_size, stack.head_size};
  }

  CrossAttention cross_attention(const std::string& name, const Seq2SeqStack& stack) const {
    return {.sizes = sizes(stack),
            .query = linear(name + "query"),          // (H, D)
            .key_value = linear(name + "key_value"),  // (2 H, D)
            .out = linear(name + "out"),              // (D, H)
            .scale = config_.attention.scale};
  }

  template <typename Layer>
  Layer layer(const std::string& name, const Seq2SeqStack& stack) const {
    Layer result;
    result.self_attention = {.sizes = sizes(stack),
                             .qkv = linear(name + "self_attn.qkv"),  // (3 H, D)
                             .out = linear(name + "self_attn.out"),  // (D, H)
                             .scale = config_.attention.scale};
    result.self_attention_norm = norm(name + "self_attn_norm");
    result.feed_forward = {.up = linear(name + "ffn.fc1"),    // (F, D), gated (2 F, D)
                           .down = linear(name + "ffn.fc2"),  // (D, F)
                           .activation = config_.feed_forward.activation,
                           .gated = config_.feed_forward.gated};
    result.feed_forward_norm = norm(name + "ffn_norm");
    result.norms = config_.norms.place;
    return result;
  }

  RelativeBias relative_bias(Device& device, const std::string& stack, const Seq2SeqStack& of,
                             bool both_ways) const {
    if (!config_.attention.relative_bias) return {};
    T5Buckets buckets = *config_.attention.relative_bias;
    buckets.bidirectional = both_ways;
    return {buckets.max_distance,
            t5_bias(vector_values(device, weights_[stack + "relative_bias"]), of.heads, buckets)};
  }

  const EncoderDecoderConfig& config_;
  const Weights& weights_;
};

}  // namespace

WeightTable transformer_weight_table(const EncoderDecoderConfig& config,
                                     const Checkpoint& checkpoint) {
  return Seq2SeqTableWriter(config, checkpoint).write();
}

void add_computed_weights(Device& device, const EncoderDecoderConfig& config, Weights& weights) {
  if (config.embedding.positions == Seq2SeqPositions::kSinusoids)
    weights.add(device, "positions", {config.context, config.width},
                sinusoidal_positions(config.context, config.width, config.embedding.wavelengths,
                                     config.embedding.first_position));
  if (config.output.multiplier != 1) {
    std::vector<float> gains = vector_values(device, weights["decoder.final_norm"]);
    for (float& gain : gains) gain *= config.output.multiplier;
    weights.add(device, "decoder.output_norm", weights["decoder.final_norm"].shape, gains);
  }
}

uint64_t computed_weight_bytes(const EncoderDecoderConfig& config) {
  uint64_t bytes = 0;
  if (config.embedding.positions == Seq2SeqPositions::kSinusoids)
    bytes += added_weight_bytes({config.context, config.width});
  if (config.output.multiplier != 1)
    bytes += added_weight_bytes({config.norms.kind == NormKind::kLayer ? 2u : 1u, config.width});
  return bytes;
}

std::unique_ptr<TransformerNetwork> build_transformer_network(Device& device,
                                                              const EncoderDecoderConfig& config,
                                                              const Weights& weights,
                                                              DataType activations) {
  return TransformerBuilder(config, weights).build(device, activations);
}

}  // namespace mulciber
