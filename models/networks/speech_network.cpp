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

/// Names of a tensor in files: those of the bare model have no prefix.
WeightNames whisper_names(const std::string& name) { return {"model." + name, name}; }

void add_whisper_norm(WeightTable& table, const std::string& name, const std::string& source,
                      uint64_t width) {
  table.push_back(
      {name,
       WeightRole::kVector,
       {2, width},
       {{whisper_names(source + ".weight"), {width}}, {whisper_names(source + ".bias"), {width}}}});
}

/// Adds the concatenation of several (D, D) matrices; those of keys have no bias.
void add_projection(WeightTable& table, const std::string& name, const std::string& source,
                    const std::vector<std::string>& parts, uint64_t width) {
  const uint64_t rows = parts.size() * width;
  WeightSpec weight = {name + ".weight", WeightRole::kMatrix, {rows, width}, {}};
  WeightSpec bias = {name + ".bias", WeightRole::kVector, {rows}, {}};
  for (const std::string& part : parts) {
    weight.sources.push_back({whisper_names(source + part + ".weight"), {width, width}});
    if (part == "k_proj")
      bias.sources.push_back({{}, {width}, SourceForm::kZeros});
    else
      bias.sources.push_back({whisper_names(source + part + ".bias"), {width}});
  }
  table.push_back(std::move(weight));
  table.push_back(std::move(bias));
}

void add_whisper_stack(WeightTable& table, const std::string& stack, uint32_t layers, uint64_t D,
                       uint64_t F, bool crosses) {
  for (uint32_t i = 0; i < layers; ++i) {
    const std::string name = fmt::format("{}.layers.{}.", stack, i);
    add_projection(table, name + "self_attn.qkv", name + "self_attn.",
                   {"q_proj", "k_proj", "v_proj"}, D);
    add_projection(table, name + "self_attn.out", name + "self_attn.", {"out_proj"}, D);
    add_whisper_norm(table, name + "self_attn_norm", name + "self_attn_layer_norm", D);
    if (crosses) {
      const std::string file = name + "encoder_attn.";
      add_projection(table, name + "cross_attn.query", file, {"q_proj"}, D);
      add_projection(table, name + "cross_attn.key_value", file, {"k_proj", "v_proj"}, D);
      add_projection(table, name + "cross_attn.out", file, {"out_proj"}, D);
      add_whisper_norm(table, name + "cross_attn_norm", name + "encoder_attn_layer_norm", D);
    }
    add_linear(table, name + "ffn.fc1", {{whisper_names(name + "fc1"), F}}, D, true);
    add_linear(table, name + "ffn.fc2", {{whisper_names(name + "fc2"), D}}, F, true);
    add_whisper_norm(table, name + "ffn_norm", name + "final_layer_norm", D);
  }
  add_whisper_norm(table, stack + ".final_norm", stack + ".layer_norm", D);
}

void add_convolution(WeightTable& table, const std::string& name, uint64_t rows,
                     uint64_t channels) {
  table.push_back(
      {name + ".weight",
       WeightRole::kMatrix,
       {rows, kTaps * channels},
       {{whisper_names(name + ".weight"), {rows, channels, kTaps}, SourceForm::kTapByTap}}});
  table.push_back(
      {name + ".bias", WeightRole::kVector, {rows}, {{whisper_names(name + ".bias"), {rows}}}});
}

void add_position_table(WeightTable& table, const std::string& name, Shape shape) {
  table.push_back({name, WeightRole::kVector, shape, {{whisper_names(name + ".weight"), shape}}});
}

class WhisperBuilder {
 public:
  WhisperBuilder(const WhisperConfig& config, const Weights& weights)
      : config_(config), weights_(weights) {}

  Linear linear(const std::string& name) const {
    // In files that mix types, each segment holds the next rows.
    const std::vector<Tensor>& segments = weights_.segments(name + ".weight");
    Linear result = {.weight = segments.front(), .bias = weights_[name + ".bias"]};
    result.more_segments.assign(segments.begin() + 1, segments.end());
    return result;
  }

  Norm norm(const std::string& name) const { return {weights_[name], kWhisperNormEpsilon}; }

  HeadSizes sizes(uint32_t heads) const {
    return {heads, config_.width / heads, config_.width / heads};
  }

  template <typename Layer>
  Layer layer(const std::string& name, uint32_t heads) const {
    Layer result;
    result.self_attention = {.sizes = sizes(heads),
                             .qkv = linear(name + "self_attn.qkv"),   // (3 D, D)
                             .out = linear(name + "self_attn.out")};  // (D, D)
    result.self_attention_norm = norm(name + "self_attn_norm");
    result.feed_forward = {.up = linear(name + "ffn.fc1"),    // (F, D)
                           .down = linear(name + "ffn.fc2"),  // (D, F)
                           .activation = config_.activation};
    result.feed_forward_norm = norm(name + "ffn_norm");
    result.norms = NormPlacement::kBefore;
    return result;
  }

  DecoderLayer decoder_layer(const std::string& name) const {
    DecoderLayer result = layer<DecoderLayer>(name, config_.decoder_heads);
    result.cross_attention = {.sizes = sizes(config_.decoder_heads),
                              .query = linear(name + "cross_attn.query"),          // (D, D)
                              .key_value = linear(name + "cross_attn.key_value"),  // (2 D, D)
                              .out = linear(name + "cross_attn.out")};             // (D, D)
    result.cross_attention_norm = norm(name + "cross_attn_norm");
    return result;
  }

 private:
  const WhisperConfig& config_;
  const Weights& weights_;
};

}  // namespace

WeightTable whisper_weight_table(const WhisperConfig& config) {
  const uint64_t D = config.width;
  WeightTable table;
  add_convolution(table, "encoder.conv1", D, config.mels);
  add_convolution(table, "encoder.conv2", D, D);
  add_position_table(table, "encoder.embed_positions", {config.positions, D});
  add_whisper_stack(table, "encoder", config.encoder_layers, D, config.encoder_ffn, false);
  WeightNames names = whisper_names("decoder.embed_tokens.weight");
  names.push_back("proj_out.weight");
  table.push_back({"decoder.embed_tokens",
                   WeightRole::kMatrix,
                   {config.vocabulary, D},
                   {{names, {config.vocabulary, D}}}});
  add_position_table(table, "decoder.embed_positions", {config.context, D});
  add_whisper_stack(table, "decoder", config.decoder_layers, D, config.decoder_ffn, true);
  return table;
}

SpeechNetwork::SpeechNetwork(const WhisperConfig& config, const Weights& weights,
                             DataType activations)
    : activations_(activations) {
  const WhisperBuilder builder(config, weights);
  first_ = builder.linear("encoder.conv1");
  second_ = builder.linear("encoder.conv2");
  positions_ = weights["encoder.embed_positions"];
  for (uint32_t i = 0; i < config.encoder_layers; ++i)
    encoder_.layers.push_back(
        builder.layer<EncoderLayer>(fmt::format("encoder.layers.{}.", i), config.encoder_heads));
  encoder_.final_norm = builder.norm("encoder.final_norm");
  decoder_ = {
      .activations = activations,
      .vocabulary = config.vocabulary,
      .context = config.context,
      .embedding = {.table = weights["decoder.embed_tokens"],
                    .positions = weights["decoder.embed_positions"],
                    .scale =
                        config.scale_embedding ? std::sqrt(static_cast<float>(config.width)) : 1},
      .output = {.weight = weights["decoder.embed_tokens"]}};
  for (uint32_t i = 0; i < config.decoder_layers; ++i)
    decoder_.stack.layers.push_back(builder.decoder_layer(fmt::format("decoder.layers.{}.", i)));
  decoder_.stack.final_norm = builder.norm("decoder.final_norm");
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
