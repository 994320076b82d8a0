#include "models/networks/image_text_reader_network.h"

#include <cmath>

#include <fmt/format.h>

namespace mulciber {
namespace {

// Rows below belong to padding: fairseq reserved rows of the position table for it.
constexpr uint64_t kPaddingRows = 2;
constexpr float kReaderNormEpsilon = 1e-5f;
constexpr const char* kDecoderPrefix = "decoder.model.decoder.";

/// Asks for the weights of the decoder and makes its parts of them.
class ReaderDecoderBuilder {
 public:
  ReaderDecoderBuilder(const ImageTextReaderConfig& config, NetworkWeights& weights)
      : config_(config), weights_(weights) {}

  TokenEmbedding embedding() const {
    const uint64_t D = config_.width, V = config_.vocabulary, T = config_.context;
    TokenEmbedding result = {
        .scale = config_.scale_embedding ? std::sqrt(static_cast<float>(config_.width)) : 1};
    result.table = weights_.tensor(
        {"decoder.words", WeightRole::kMatrix, {V, D}, {{in_file("embed_tokens.weight"), {V, D}}}});
    result.positions = weights_.tensor({"decoder.positions",
                                        WeightRole::kVector,
                                        {T, D},
                                        {{in_file("embed_positions.weight"),
                                          {T, D},
                                          SourceForm::kAsInFile,
                                          T + kPaddingRows,
                                          kPaddingRows}}});
    if (config_.embedding_norm)
      result.norm = norm("decoder.embedding_norm", in_file("layernorm_embedding"));
    return result;
  }

  DecoderLayer layer(uint32_t i) const {
    const uint64_t D = config_.width, F = config_.hidden, W = config_.vision.tower.width;
    const HeadSizes sizes = {config_.heads, config_.width / config_.heads,
                             config_.width / config_.heads};
    const std::string layer = fmt::format("layers.{}.", i), name = "decoder." + layer;
    const auto file = [&](const char* part) { return in_file(layer + part); };
    const auto linear = [&](const char* own, const std::vector<LinearPart>& parts,
                            uint64_t columns) {
      return weights_.linear(name + own, parts, columns, true);
    };
    return {
        .self_attention = {.sizes = sizes,
                           .qkv = linear("qkv",
                                         {{file("self_attn.q_proj"), D},
                                          {file("self_attn.k_proj"), D},
                                          {file("self_attn.v_proj"), D}},
                                         D),
                           .out = linear("out", {{file("self_attn.out_proj"), D}}, D)},
        .self_attention_norm = norm(name + "attention_norm", file("self_attn_layer_norm")),
        .cross_attention = {.sizes = sizes,
                            .query = linear("cross.query", {{file("encoder_attn.q_proj"), D}}, D),
                            .key_value = linear("cross.key_value",
                                                {{file("encoder_attn.k_proj"), D},
                                                 {file("encoder_attn.v_proj"), D}},
                                                W),
                            .out = linear("cross.out", {{file("encoder_attn.out_proj"), D}}, D)},
        .cross_attention_norm = norm(name + "cross_norm", file("encoder_attn_layer_norm")),
        .feed_forward = {.up = linear("up", {{file("fc1"), F}}, D),
                         .down = linear("down", {{file("fc2"), D}}, F),
                         .activation = config_.activation},
        .feed_forward_norm = norm(name + "feed_forward_norm", file("final_layer_norm")),
        .norms = NormPlacement::kAfter};
  }

  /// Files omit the output if it is tied to the embedding.
  Linear output() const {
    const Shape shape = {config_.vocabulary, config_.width};
    WeightNames names = in_file("embed_tokens.weight");
    names.insert(names.begin(), "decoder.output_projection.weight");
    return weights_.linear(
        WeightSpec{"decoder.output.weight", WeightRole::kMatrix, shape, {{names, shape}}},
        std::nullopt);
  }

 private:
  static WeightNames in_file(const std::string& part) { return {kDecoderPrefix + part}; }

  Norm norm(const std::string& name, const WeightNames& part) const {
    const uint64_t D = config_.width;
    const Tensor weight =
        weights_.tensor({name,
                         WeightRole::kVector,
                         {2, D},
                         {{with_ending(part, ".weight"), {D}}, {with_ending(part, ".bias"), {D}}}});
    return {weight, kReaderNormEpsilon};
  }

  const ImageTextReaderConfig& config_;
  NetworkWeights& weights_;
};

TextDecoder reader_decoder(const ImageTextReaderConfig& config, NetworkWeights& weights,
                           DataType activations) {
  const ReaderDecoderBuilder parts(config, weights);
  TextDecoder decoder = {.activations = activations,
                         .vocabulary = config.vocabulary,
                         .context = config.context,
                         .embedding = parts.embedding()};
  for (uint32_t i = 0; i < config.layers; ++i) decoder.stack.layers.push_back(parts.layer(i));
  decoder.output = parts.output();
  return decoder;
}

}  // namespace

ImageTextReaderNetwork::ImageTextReaderNetwork(const ImageTextReaderConfig& config,
                                               NetworkWeights& weights, DataType activations)
    : tower(config.vision, weights, activations),
      decoder(reader_decoder(config, weights, activations)) {}

}  // namespace mulciber
