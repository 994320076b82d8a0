// The weights of encoder-decoder Transformers, and the network that they make.
#include <algorithm>

#include <fmt/format.h>

#include "models/networks/transformer_network.h"

namespace mulciber {
namespace {

constexpr const char* kOutputMatrix = "lm_head.weight";

WeightSpec token_matrix(const std::string& name, const WeightNames& names, uint64_t vocabulary,
                        uint64_t width) {
  const Shape shape = {vocabulary, width};
  return {name, WeightRole::kMatrix, shape, {{names, shape}}};
}

/// Tables of token embeddings, (V, D): one tensor if the stacks share it.
struct TokenTables {
  Tensor source, target;
};

TokenTables token_tables(const EncoderDecoderConfig& config, NetworkWeights& weights) {
  const uint64_t D = config.width;
  const auto names_of = [&](const char* part) {
    return with_ending(with_prefixes(config.names.prefixes, part), ".weight");
  };
  const auto target_table = [&](const std::string& name, WeightNames names) {
    if (config.output.tied) names.emplace_back(kOutputMatrix);
    return weights.tensor(token_matrix(name, names, config.target_vocabulary, D));
  };
  const WeightNames source = names_of(config.names.encoder.embedding);
  const WeightNames target = names_of(config.names.decoder.embedding);
  if (config.embedding.shared) {
    WeightNames any = names_of(config.names.shared);
    any.insert(any.end(), source.begin(), source.end());
    any.insert(any.end(), target.begin(), target.end());
    const Tensor table = target_table("embedding", std::move(any));
    return {table, table};
  }
  return {weights.tensor(token_matrix("encoder.embedding", source, config.source_vocabulary, D)),
          target_table("decoder.embedding", target)};
}

/// Sinusoidal positions, (P, D), which both stacks add; none: the configuration has other ones.
std::optional<Tensor> sinusoids(const EncoderDecoderConfig& config, NetworkWeights& weights) {
  const Seq2SeqEmbedding& embedding = config.embedding;
  if (embedding.positions != Seq2SeqPositions::kSinusoids) return std::nullopt;
  return weights.computed({"positions", {config.context, config.width}, [&] {
                             return sinusoidal_positions(config.context, config.width,
                                                         embedding.wavelengths,
                                                         embedding.first_position);
                           }});
}

/// Builds the parts of one stack. D: width of the network, H: columns of all heads, F: size of the
/// feed-forward networks.
class Seq2SeqStackParts {
 public:
  /// name: prefix of the weights' names.
  Seq2SeqStackParts(const EncoderDecoderConfig& config, NetworkWeights& weights, std::string name,
                    const Seq2SeqStack& stack, const Seq2SeqStackNames& names)
      : config_(config), weights_(weights), name_(std::move(name)), stack_(stack), names_(names) {}

  /// positions: sinusoids(). table: (V, D).
  TokenEmbedding embedding(const Tensor& table, const std::optional<Tensor>& positions) {
    const Seq2SeqEmbedding& of = config_.embedding;
    TokenEmbedding result = {.table = table, .positions = positions, .scale = of.scale};
    if (of.positions == Seq2SeqPositions::kLearned) result.positions = learned_positions();
    if (of.norm) result.norm = norm(name_ + "embedding_norm", names_.embedding_norm);
    return result;
  }

  EncoderLayer encoder_layer(uint32_t index) {
    const auto [name, file] = layer_names(index);
    return {.self_attention = self_attention(name, file),
            .self_attention_norm = norm(name + "self_attn_norm", file + names_.attention_norm),
            .feed_forward = feed_forward(name, file),
            .feed_forward_norm = norm(name + "ffn_norm", file + names_.feed_forward_norm),
            .norms = config_.norms.place};
  }

  DecoderLayer decoder_layer(uint32_t index) {
    const auto [name, file] = layer_names(index);
    return {.self_attention = self_attention(name, file),
            .self_attention_norm = norm(name + "self_attn_norm", file + names_.attention_norm),
            .cross_attention = cross_attention(name, file),
            .cross_attention_norm = norm(name + "cross_attn_norm", file + names_.cross_norm),
            .feed_forward = feed_forward(name, file),
            .feed_forward_norm = norm(name + "ffn_norm", file + names_.feed_forward_norm),
            .norms = config_.norms.place};
  }

  std::optional<Norm> final_norm() {
    if (!config_.norms.final_norm) return std::nullopt;
    return norm(name_ + "final_norm", names_.final_norm);
  }

  RelativeBias relative_bias(bool bidirectional) {
    if (!config_.attention.relative_bias) return {};
    T5Buckets buckets = *config_.attention.relative_bias;
    buckets.bidirectional = bidirectional;
    const Shape shape = {buckets.buckets, stack_.heads};
    const Tensor table = weights_.tensor({name_ + "relative_bias",
                                          WeightRole::kVector,
                                          shape,
                                          {{tensor_names(names_.relative_bias), shape}}});
    return {buckets.max_distance, t5_bias(weights_.values(table), stack_.heads, buckets)};
  }

 private:
  WeightNames tensor_names(const std::string& part) const {
    return with_ending(with_prefixes(config_.names.prefixes, part), ".weight");
  }

  /// Prefixes of a layer's names, in the network and in files.
  std::pair<std::string, std::string> layer_names(uint32_t index) const {
    return {fmt::format("{}layers.{}.", name_, index), fmt::format("{}{}.", names_.layer, index)};
  }

  LinearPart part(const std::string& file, uint64_t rows) const {
    return {with_prefixes(config_.names.prefixes, file), rows};
  }

  Norm norm(const std::string& name, const std::string& file) {
    const uint64_t D = config_.width;
    WeightSpec gains = {name, WeightRole::kVector, {D}, {{tensor_names(file), {D}}}};
    if (config_.norms.kind == NormKind::kLayer) {
      gains.shape = {2, D};
      gains.sources.push_back(
          {with_ending(with_prefixes(config_.names.prefixes, file), ".bias"), {D}});
    }
    return {weights_.tensor(std::move(gains)), config_.norms.epsilon, config_.norms.kind};
  }

  /// (P, D)
  Tensor learned_positions() {
    const uint64_t P = config_.context, D = config_.width;
    const uint64_t first = config_.embedding.first_position;
    return weights_.tensor(
        {name_ + "positions",
         WeightRole::kVector,
         {P, D},
         {{tensor_names(names_.positions), {P, D}, SourceForm::kAsInFile, P + first, first}}});
  }

  HeadSizes sizes() const { return {stack_.heads, stack_.head_size, stack_.head_size}; }

  Linear projection(const std::string& name, const std::vector<LinearPart>& parts,
                    uint64_t columns) {
    return weights_.linear(name, parts, columns, config_.attention.bias);
  }

  SelfAttention self_attention(const std::string& name, const std::string& file) {
    const uint64_t D = config_.width, H = stack_.head_columns();
    const std::vector<LinearPart> qkv = {part(file + names_.q, H), part(file + names_.k, H),
                                         part(file + names_.v, H)};
    return {.sizes = sizes(),
            .qkv = projection(name + "self_attn.qkv", qkv, D),                           // (3 H, D)
            .out = projection(name + "self_attn.out", {part(file + names_.out, D)}, H),  // (D, H)
            .scale = config_.attention.scale};
  }

  CrossAttention cross_attention(const std::string& layer, const std::string& file) {
    const uint64_t D = config_.width, H = stack_.head_columns();
    const std::string name = layer + "cross_attn.";
    const std::vector<LinearPart> key_value = {part(file + names_.cross_k, H),
                                               part(file + names_.cross_v, H)};
    return {.sizes = sizes(),
            .query = projection(name + "query", {part(file + names_.cross_q, H)}, D),  // (H, D)
            .key_value = projection(name + "key_value", key_value, D),                 // (2 H, D)
            .out = projection(name + "out", {part(file + names_.cross_out, D)}, H),    // (D, H)
            .scale = config_.attention.scale};
  }

  FeedForward feed_forward(const std::string& name, const std::string& file) {
    const uint64_t D = config_.width, F = stack_.hidden;
    const Seq2SeqFeedForward& of = config_.feed_forward;
    std::vector<LinearPart> up = {part(file + names_.up, F)};
    if (of.gated) up.insert(up.begin(), part(file + names_.gate, F));
    const std::vector<LinearPart> down = {part(file + names_.down, D)};
    // (F, D), gated (2 F, D); (D, F)
    return {.up = weights_.linear(name + "ffn.fc1", up, D, of.bias, of.gated),
            .down = weights_.linear(name + "ffn.fc2", down, F, of.bias),
            .activation = of.activation,
            .gated = of.gated};
  }

  const EncoderDecoderConfig& config_;
  NetworkWeights& weights_;
  std::string name_;
  const Seq2SeqStack& stack_;
  const Seq2SeqStackNames& names_;
};

/// The norm with its gains multiplied by `factor`.
Norm scaled_gains(const Norm& norm, float factor, NetworkWeights& weights) {
  Norm scaled = norm;
  scaled.weight = weights.computed({"decoder.output_norm", norm.weight.shape, [&] {
                                      std::vector<float> gains = weights.values(norm.weight);
                                      for (float& gain : gains) gain *= factor;
                                      return gains;
                                    }});
  return scaled;
}

/// target_table: (V, D), the projection's matrix where it is tied.
Linear output_projection(const EncoderDecoderConfig& config, NetworkWeights& weights,
                         const Tensor& target_table) {
  const uint64_t V = config.target_vocabulary;
  Linear output = {.weight = target_table};
  if (!config.output.tied)
    output.weight = weights.tensor(token_matrix("output.weight", {kOutputMatrix}, V, config.width));
  // Among all known models, only this tensor has an extra dimension.
  if (weights.find({"final_logits_bias"}))
    output.bias = weights.tensor(
        {"output.bias", WeightRole::kVector, {V}, {{{"final_logits_bias"}, {1, V}}}});
  return output;
}

}  // namespace

TransformerNetwork::TransformerNetwork(const EncoderDecoderConfig& config, NetworkWeights& weights,
                                       DataType type)
    : width_(config.width),
      widest_hidden_(std::max(config.encoder.hidden, config.decoder.hidden) *
                     (config.feed_forward.gated ? 2 : 1)) {
  activations = type;
  source_vocabulary = config.source_vocabulary;
  target_vocabulary = config.target_vocabulary;
  context = config.context;
  padding_has_states = !config.embedding.skips_padding;

  const TokenTables tables = token_tables(config, weights);
  const std::optional<Tensor> positions = sinusoids(config, weights);

  Seq2SeqStackParts source(config, weights, "encoder.", config.encoder, config.names.encoder);
  source_embedding_ = source.embedding(tables.source, positions);
  for (uint32_t i = 0; i < config.encoder.layers; ++i)
    encoder_.layers.push_back(source.encoder_layer(i));
  encoder_.final_norm = source.final_norm();
  encoder_bias = source.relative_bias(true);

  Seq2SeqStackParts target(config, weights, "decoder.", config.decoder, config.names.decoder);
  target_embedding_ = target.embedding(tables.target, positions);
  for (uint32_t i = 0; i < config.decoder.layers; ++i)
    decoder_.layers.push_back(target.decoder_layer(i));
  decoder_.final_norm = target.final_norm();
  decoder_bias = target.relative_bias(false);

  if (config.output.multiplier != 1) {
    const Norm norm = decoder_.final_norm.value();
    scaled_norm_ = {norm, scaled_gains(norm, config.output.multiplier, weights)};
    decoder_.final_norm.reset();
  }
  output = output_projection(config, weights, tables.target);
}

}  // namespace mulciber
