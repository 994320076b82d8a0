#include "models/networks/image_text_reader_weights.h"

#include <cmath>

#include <fmt/format.h>

#include "models/core/linear_weights.h"
#include "models/networks/vision_network.h"

namespace mulciber {
namespace {

// Rows below belong to padding: fairseq reserved rows of the position table for it.
constexpr uint64_t kPaddingRows = 2;
constexpr float kReaderNormEpsilon = 1e-5f;
constexpr const char* kDecoderPrefix = "decoder.model.decoder.";

class ReaderTableWriter {
 public:
  explicit ReaderTableWriter(const ImageTextReaderConfig& config) : config_(config) {}

  void add_to(WeightTable& table) const {
    const uint64_t D = config_.width, V = config_.vocabulary, F = config_.hidden,
                   W = config_.vision.tower.width, rows = config_.context + kPaddingRows;
    const auto file = [](const std::string& part) { return WeightNames{kDecoderPrefix + part}; };
    const WeightNames words = file("embed_tokens.weight");
    table.push_back({"decoder.words", WeightRole::kMatrix, {V, D}, {{words, {V, D}}}});
    table.push_back({"decoder.positions",
                     WeightRole::kVector,
                     {config_.context, D},
                     {{file("embed_positions.weight"),
                       {config_.context, D},
                       SourceForm::kAsInFile,
                       rows,
                       kPaddingRows}}});
    if (config_.embedding_norm) norm(table, "decoder.embedding_norm", file("layernorm_embedding"));
    for (uint32_t i = 0; i < config_.layers; ++i) {
      const std::string layer = fmt::format("layers.{}.", i), name = "decoder." + layer;
      const auto part = [&](const char* of) { return file(layer + of); };
      add_linear(table, name + "qkv",
                 {{part("self_attn.q_proj"), D},
                  {part("self_attn.k_proj"), D},
                  {part("self_attn.v_proj"), D}},
                 D, true);
      add_linear(table, name + "out", {{part("self_attn.out_proj"), D}}, D, true);
      norm(table, name + "attention_norm", part("self_attn_layer_norm"));
      add_linear(table, name + "cross.query", {{part("encoder_attn.q_proj"), D}}, D, true);
      add_linear(table, name + "cross.key_value",
                 {{part("encoder_attn.k_proj"), D}, {part("encoder_attn.v_proj"), D}}, W, true);
      add_linear(table, name + "cross.out", {{part("encoder_attn.out_proj"), D}}, D, true);
      norm(table, name + "cross_norm", part("encoder_attn_layer_norm"));
      add_linear(table, name + "up", {{part("fc1"), F}}, D, true);
      add_linear(table, name + "down", {{part("fc2"), D}}, F, true);
      norm(table, name + "feed_forward_norm", part("final_layer_norm"));
    }
    // Files omit the output if it is tied to the embedding.
    WeightNames output = {"decoder.output_projection.weight"};
    output.insert(output.end(), words.begin(), words.end());
    table.push_back({"decoder.output.weight", WeightRole::kMatrix, {V, D}, {{output, {V, D}}}});
  }

 private:
  void norm(WeightTable& table, const std::string& name, const WeightNames& part) const {
    const Shape width = {config_.width};
    table.push_back({name,
                     WeightRole::kVector,
                     {2, config_.width},
                     {{with_ending(part, ".weight"), width}, {with_ending(part, ".bias"), width}}});
  }

  const ImageTextReaderConfig& config_;
};

Linear reader_linear(const Weights& weights, const std::string& name) {
  const std::vector<Tensor>& segments = weights.segments(name + ".weight");
  Linear linear = {.weight = segments.front()};
  if (weights.has(name + ".bias")) linear.bias = weights[name + ".bias"];
  linear.more_segments.assign(segments.begin() + 1, segments.end());
  return linear;
}

Norm reader_norm(const Weights& weights, const std::string& name) {
  return {weights[name], kReaderNormEpsilon};
}

}  // namespace

WeightTable image_text_reader_weight_table(const ImageTextReaderConfig& config,
                                           const Checkpoint& checkpoint) {
  WeightTable table = vision_weight_table(config.vision, checkpoint);
  ReaderTableWriter(config).add_to(table);
  return table;
}

TextDecoder image_text_reader_decoder(const ImageTextReaderConfig& config, const Weights& weights,
                                      DataType activations) {
  const HeadSizes sizes = {config.heads, config.width / config.heads, config.width / config.heads};
  TextDecoder decoder = {
      .activations = activations,
      .vocabulary = config.vocabulary,
      .context = config.context,
      .embedding = {.table = weights["decoder.words"],
                    .positions = weights["decoder.positions"],
                    .scale =
                        config.scale_embedding ? std::sqrt(static_cast<float>(config.width)) : 1},
      .output = reader_linear(weights, "decoder.output")};
  if (config.embedding_norm)
    decoder.embedding.norm = reader_norm(weights, "decoder.embedding_norm");
  for (uint32_t i = 0; i < config.layers; ++i) {
    const std::string name = fmt::format("decoder.layers.{}.", i);
    const auto linear = [&](const char* part) { return reader_linear(weights, name + part); };
    const auto norm = [&](const char* part) { return reader_norm(weights, name + part); };
    decoder.stack.layers.push_back(
        {.self_attention = {.sizes = sizes, .qkv = linear("qkv"), .out = linear("out")},
         .self_attention_norm = norm("attention_norm"),
         .cross_attention = {.sizes = sizes,
                             .query = linear("cross.query"),
                             .key_value = linear("cross.key_value"),
                             .out = linear("cross.out")},
         .cross_attention_norm = norm("cross_norm"),
         .feed_forward = {.up = linear("up"),
                          .down = linear("down"),
                          .activation = config.activation},
         .feed_forward_norm = norm("feed_forward_norm"),
         .norms = NormPlacement::kAfter});
  }
  return decoder;
}

}  // namespace mulciber
