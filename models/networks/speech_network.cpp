#include "models/networks/speech_network.h"

#include <cmath>

#include <fmt/format.h>

#include "layers/convolution.h"
#include "models/core/linear_weights.h"
#include "ops/elementwise.h"

namespace mulciber {
namespace {

constexpr uint64_t kTaps = 3;  // kernel size of both convolutions
constexpr float kWhisperNormEpsilon = 1e-5f;

/// Builds Whisper's parts. D: width of the network, F: size of the feed-forward networks.
class WhisperParts {
 public:
  WhisperParts(const WhisperConfig& config, NetworkWeights& weights)
      : config_(config), weights_(weights) {}

  /// (D, 3 channels)
  Linear convolution(const std::string& name, uint64_t channels) {
    const uint64_t D = config_.width;
    return weights_.linear(
        {name + ".weight",
         WeightRole::kMatrix,
         {D, kTaps * channels},
         {{names(name + ".weight"), {D, channels, kTaps}, SourceForm::kTapByTap}}},
        linear_bias(name, {{names(name), D}}));
  }

  /// (count, D)
  Tensor positions(const std::string& name, uint64_t count) {
    const Shape shape = {count, config_.width};
    return weights_.tensor({name, WeightRole::kVector, shape, {{names(name + ".weight"), shape}}});
  }

  /// (vocabulary, D), for the embedding and the output projection.
  Tensor token_table() {
    const Shape shape = {config_.vocabulary, config_.width};
    const std::string name = "decoder.embed_tokens";
    WeightNames any = names(name + ".weight");
    any.emplace_back("proj_out.weight");
    return weights_.tensor({name, WeightRole::kMatrix, shape, {{any, shape}}});
  }

  EncoderLayer encoder_layer(uint32_t index) {
    const std::string name = fmt::format("encoder.layers.{}.", index);
    return {.self_attention = self_attention(name + "self_attn.", config_.encoder_heads),
            .self_attention_norm = norm(name + "self_attn_norm", name + "self_attn_layer_norm"),
            .feed_forward = feed_forward(name, config_.encoder_ffn),
            .feed_forward_norm = norm(name + "ffn_norm", name + "final_layer_norm"),
            .norms = NormPlacement::kBefore};
  }

  DecoderLayer decoder_layer(uint32_t index) {
    const std::string name = fmt::format("decoder.layers.{}.", index);
    return {
        .self_attention = self_attention(name + "self_attn.", config_.decoder_heads),
        .self_attention_norm = norm(name + "self_attn_norm", name + "self_attn_layer_norm"),
        .cross_attention = cross_attention(name + "cross_attn.", name + "encoder_attn."),
        .cross_attention_norm = norm(name + "cross_attn_norm", name + "encoder_attn_layer_norm"),
        .feed_forward = feed_forward(name, config_.decoder_ffn),
        .feed_forward_norm = norm(name + "ffn_norm", name + "final_layer_norm"),
        .norms = NormPlacement::kBefore};
  }

  Norm norm(const std::string& name, const std::string& file) {
    const uint64_t D = config_.width;
    const Tensor weight =
        weights_.tensor({name,
                         WeightRole::kVector,
                         {2, D},
                         {{names(file + ".weight"), {D}}, {names(file + ".bias"), {D}}}});
    return {weight, kWhisperNormEpsilon};
  }

 private:
  /// Names of a tensor in files: those of the bare model have no prefix.
  static WeightNames names(const std::string& name) { return {"model." + name, name}; }

  HeadSizes sizes(uint32_t heads) const {
    return {heads, config_.width / heads, config_.width / heads};
  }

  /// The concatenation of several (D, D) matrices; those of keys have no bias.
  Linear projection(const std::string& name, const std::string& file,
                    const std::vector<std::string>& parts) {
    std::vector<LinearPart> all;
    for (const std::string& part : parts) all.push_back({names(file + part), config_.width});
    WeightSpec bias = linear_bias(name, all);
    for (size_t i = 0; i < parts.size(); ++i) {
      if (parts[i] != "k_proj") continue;
      bias.sources[i].names.clear();
      bias.sources[i].form = SourceForm::kZeros;
    }
    return weights_.linear(linear_matrix(name, all, config_.width), std::move(bias));
  }

  SelfAttention self_attention(const std::string& name, uint32_t heads) {
    return {.sizes = sizes(heads),
            .qkv = projection(name + "qkv", name, {"q_proj", "k_proj", "v_proj"}),  // (3 D, D)
            .out = projection(name + "out", name, {"out_proj"})};                   // (D, D)
  }

  CrossAttention cross_attention(const std::string& name, const std::string& file) {
    return {.sizes = sizes(config_.decoder_heads),
            .query = projection(name + "query", file, {"q_proj"}),                    // (D, D)
            .key_value = projection(name + "key_value", file, {"k_proj", "v_proj"}),  // (2 D, D)
            .out = projection(name + "out", file, {"out_proj"})};                     // (D, D)
  }

  /// layer: prefix of its names.
  FeedForward feed_forward(const std::string& layer, uint64_t F) {
    const uint64_t D = config_.width;
    const std::string up = layer + "fc1", down = layer + "fc2";
    return {.up = weights_.linear(layer + "ffn.fc1", {{names(up), F}}, D, true),      // (F, D)
            .down = weights_.linear(layer + "ffn.fc2", {{names(down), D}}, F, true),  // (D, F)
            .activation = config_.activation};
  }

  const WhisperConfig& config_;
  NetworkWeights& weights_;
};

}  // namespace

SpeechNetwork::SpeechNetwork(const WhisperConfig& config, NetworkWeights& weights,
                             DataType activations)
    : activations_(activations) {
  WhisperParts parts(config, weights);
  first_ = parts.convolution("encoder.conv1", config.mels);
  second_ = parts.convolution("encoder.conv2", config.width);
  positions_ = parts.positions("encoder.embed_positions", config.positions);
  for (uint32_t i = 0; i < config.encoder_layers; ++i)
    encoder_.layers.push_back(parts.encoder_layer(i));
  encoder_.final_norm = parts.norm("encoder.final_norm", "encoder.layer_norm");

  const Tensor table = parts.token_table();
  decoder_ = {
      .activations = activations,
      .vocabulary = config.vocabulary,
      .context = config.context,
      .embedding = {.table = table,
                    .positions = parts.positions("decoder.embed_positions", config.context),
                    .scale =
                        config.scale_embedding ? std::sqrt(static_cast<float>(config.width)) : 1},
      .output = {.weight = table}};
  for (uint32_t i = 0; i < config.decoder_layers; ++i)
    decoder_.stack.layers.push_back(parts.decoder_layer(i));
  decoder_.stack.final_norm = parts.norm("decoder.final_norm", "decoder.layer_norm");
}

Tensor SpeechNetwork::encode(ProgramBuilder& builder, const Tensor& windows,
                             const StackControl& control, Trace* trace) const {
  const auto scope = builder.scope("encoder");
  const Tensor embedded = [&] {
    const auto layer = builder.layer("convolutions");
    const Tensor input =
        activations_ == windows.type ? windows : convert(builder, windows, activations_);
    const Tensor x = convolve(builder, first_, input);  // (frames, D)
    const Tensor y = convolve(builder, second_, unfold_by_twos(builder, x), positions_);
    return y.reshaped({1, y.shape.rows(), y.shape.columns()});
  }();
  const Tensor encoded = encoder_(builder, embedded, control, trace);
  if (trace) trace->keep(builder, "last_hidden_state", encoded);
  return encoded;
}

}  // namespace mulciber
