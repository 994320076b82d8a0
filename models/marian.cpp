#include "models/marian.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "mulciber/error.h"

namespace mulciber {
namespace {

// One of the two stacks, as the weight table and the network see it.
struct Stack {
  std::string name;  // "encoder", "decoder"
  uint32_t layers, heads, hidden;
  bool has_cross_attention;
};

Stack encoder_stack(const MarianConfig& config) {
  return {"encoder", config.encoder_layers, config.encoder_heads, config.encoder_ffn, false};
}

Stack decoder_stack(const MarianConfig& config) {
  return {"decoder", config.decoder_layers, config.decoder_heads, config.decoder_ffn, true};
}

// --- The weights ---------------------------------------------------------------------------------

void add_linear(WeightTable& table, const std::string& name, const std::string& prefix,
                std::vector<std::string> parts, uint64_t rows_of_part, uint64_t columns) {
  WeightSpec weight = {
      name + ".weight", WeightRole::kMatrix, {parts.size() * rows_of_part, columns}, {}};
  WeightSpec bias = {name + ".bias", WeightRole::kVector, {parts.size() * rows_of_part}, {}};
  for (const std::string& part : parts) {
    weight.sources.push_back({{prefix + part + ".weight"}, {rows_of_part, columns}});
    bias.sources.push_back({{prefix + part + ".bias"}, {rows_of_part}});
  }
  table.push_back(std::move(weight));
  table.push_back(std::move(bias));
}

void add_norm(WeightTable& table, const std::string& name, const std::string& source,
              uint64_t width) {
  table.push_back({name,
                   WeightRole::kVector,
                   {2, width},
                   {{{source + ".weight"}, {width}}, {{source + ".bias"}, {width}}}});
}

void add_stack(WeightTable& table, const MarianConfig& config, const Stack& stack) {
  const uint64_t D = config.d_model, F = stack.hidden;
  for (uint32_t i = 0; i < stack.layers; ++i) {
    const std::string name = fmt::format("{}.layers.{}.", stack.name, i);
    const std::string file = "model." + name;
    add_linear(table, name + "self_attn.qkv", file + "self_attn.", {"q_proj", "k_proj", "v_proj"},
               D, D);
    add_linear(table, name + "self_attn.out", file + "self_attn.", {"out_proj"}, D, D);
    add_norm(table, name + "self_attn_norm", file + "self_attn_layer_norm", D);
    if (stack.has_cross_attention) {
      add_linear(table, name + "cross_attn.query", file + "encoder_attn.", {"q_proj"}, D, D);
      add_linear(table, name + "cross_attn.key_value", file + "encoder_attn.", {"k_proj", "v_proj"},
                 D, D);
      add_linear(table, name + "cross_attn.out", file + "encoder_attn.", {"out_proj"}, D, D);
      add_norm(table, name + "cross_attn_norm", file + "encoder_attn_layer_norm", D);
    }
    add_linear(table, name + "ffn.fc1", file, {"fc1"}, F, D);
    add_linear(table, name + "ffn.fc2", file, {"fc2"}, D, F);
    add_norm(table, name + "ffn_norm", file + "final_layer_norm", D);
  }
  if (config.normalize_embedding)
    add_norm(table, stack.name + ".embedding_norm", "model." + stack.name + ".layernorm_embedding",
             D);
  if (config.final_norm)
    add_norm(table, stack.name + ".final_norm", "model." + stack.name + ".layer_norm", D);
  if (!config.static_positions) {
    table.push_back({stack.name + ".positions",
                     WeightRole::kVector,
                     {config.max_positions, D},
                     {{{fmt::format("model.{}.embed_positions.weight", stack.name)},
                       {config.max_positions, D}}}});
  }
}

// --- The network ---------------------------------------------------------------------------------

Linear linear(const Weights& weights, const std::string& name) {
  return {weights[name + ".weight"], weights[name + ".bias"]};
}

Norm norm(const Weights& weights, const MarianConfig& config, const std::string& name) {
  return {weights[name], static_cast<float>(config.norm_epsilon)};
}

SelfAttention self_attention(const Weights& weights, const std::string& name, HeadSizes sizes) {
  return {.sizes = sizes,
          .qkv = linear(weights, name + ".qkv"),   // (3 D, D)
          .out = linear(weights, name + ".out")};  // (D, D)
}

CrossAttention cross_attention(const Weights& weights, const std::string& name, HeadSizes sizes) {
  return {.sizes = sizes,
          .query = linear(weights, name + ".query"),          // (D, D)
          .key_value = linear(weights, name + ".key_value"),  // (2 D, D)
          .out = linear(weights, name + ".out")};             // (D, D)
}

FeedForward feed_forward(const Weights& weights, const std::string& name, Activation activation) {
  return {.up = linear(weights, name + ".fc1"),    // (F, D)
          .down = linear(weights, name + ".fc2"),  // (D, F)
          .activation = activation};
}

TokenEmbedding token_embedding(const Weights& weights, const MarianConfig& config,
                               const std::string& stack) {
  TokenEmbedding embedding = {
      .table = weights[config.shared_embeddings ? "embedding" : stack + ".embedding"],     // (V, D)
      .positions = weights[config.static_positions ? "positions" : stack + ".positions"],  // (P, D)
      .scale = config.scale_embedding ? std::sqrt(static_cast<float>(config.d_model)) : 1.0f};
  if (config.normalize_embedding) embedding.norm = norm(weights, config, stack + ".embedding_norm");
  return embedding;
}

template <typename Layer>
Layer layer_of(const Weights& weights, const MarianConfig& config, const std::string& name,
               HeadSizes sizes) {
  Layer layer;
  layer.self_attention = self_attention(weights, name + "self_attn", sizes);
  layer.self_attention_norm = norm(weights, config, name + "self_attn_norm");
  layer.feed_forward = feed_forward(weights, name + "ffn", config.activation);
  layer.feed_forward_norm = norm(weights, config, name + "ffn_norm");
  layer.norms = config.normalize_before ? NormPlacement::kBefore : NormPlacement::kAfter;
  return layer;
}

EncoderDecoderNetwork build_network(const Weights& weights, const MarianConfig& config,
                                    DataType activations) {
  EncoderDecoderNetwork network;
  network.activations = activations;
  network.source_vocabulary = config.source_vocab;
  network.target_vocabulary = config.target_vocab;
  network.width = config.d_model;
  network.widest_hidden = std::max(config.encoder_ffn, config.decoder_ffn);
  network.max_positions = config.max_positions;

  network.encoder.embedding = token_embedding(weights, config, "encoder");
  const HeadSizes encoder_sizes = {config.encoder_heads, config.encoder_head_dim(),
                                   config.encoder_head_dim()};
  for (uint32_t i = 0; i < config.encoder_layers; ++i)
    network.encoder.layers.push_back(layer_of<EncoderLayer>(
        weights, config, fmt::format("encoder.layers.{}.", i), encoder_sizes));

  network.decoder.embedding = token_embedding(weights, config, "decoder");
  const HeadSizes decoder_sizes = {config.decoder_heads, config.decoder_head_dim(),
                                   config.decoder_head_dim()};
  for (uint32_t i = 0; i < config.decoder_layers; ++i) {
    const std::string name = fmt::format("decoder.layers.{}.", i);
    DecoderLayer layer = layer_of<DecoderLayer>(weights, config, name, decoder_sizes);
    layer.cross_attention = cross_attention(weights, name + "cross_attn", decoder_sizes);
    layer.cross_attention_norm = norm(weights, config, name + "cross_attn_norm");
    network.decoder.layers.push_back(std::move(layer));
  }
  if (config.final_norm) {
    network.encoder.final_norm = norm(weights, config, "encoder.final_norm");
    network.decoder.final_norm = norm(weights, config, "decoder.final_norm");
  }

  const std::string table = config.shared_embeddings ? "embedding" : "decoder.embedding";
  network.output.weight = weights[config.tied_output ? table : "output.weight"];  // (V, D)
  if (weights.has("output.bias")) network.output.bias = weights["output.bias"];   // (V)
  return network;
}

Weights load_weights(Device& device, const Checkpoint& checkpoint, const MarianConfig& config,
                     const ModelOptions& options) {
  const WeightTable table = marian_weight_table(config, checkpoint);
  const uint64_t bytes = weight_bytes(table, checkpoint, "marian", options.matrices) +
                         uint64_t{config.max_positions} * config.d_model * sizeof(float);
  require_memory(device, bytes, options.memory_limit, "the model");
  Weights weights(device, table, checkpoint, "marian", options.matrices);
  if (config.static_positions) {
    weights.add(device, "positions", {config.max_positions, config.d_model},
                sinusoidal_positions(config.max_positions, config.d_model));
  }
  return weights;
}

// --- Arrays by the names of Hugging Face transformers
// -----------------------------------------------

constexpr const char* kFamily = "marian";

void apply_mask(PaddedIds& ids, const NamedArrays& inputs) {
  if (inputs.count("attention_mask") == 0) return;
  const NamedArray& mask = matrix_input(kFamily, inputs, "attention_mask");
  if (mask.shape != std::vector<uint64_t>{ids.rows, ids.length})
    throw ModelError("marian input `attention_mask`", "does not have the shape of input_ids", "");
  for (uint32_t row = 0; row < ids.rows; ++row) {
    const auto first = mask.values.begin() + row * ids.length, last = first + ids.length;
    const auto padding = std::find(first, last, 0.0);
    if (std::any_of(padding, last, [](double value) { return value != 0; }))
      throw ModelError("marian input `attention_mask`",
                       fmt::format("row {} masks a token in front of another one", row),
                       "pad on the right");
    ids.lengths[row] = static_cast<uint32_t>(padding - first);
  }
}

}  // namespace

WeightTable marian_weight_table(const MarianConfig& config, const Checkpoint& checkpoint) {
  const uint64_t D = config.d_model;
  WeightTable table;
  if (config.shared_embeddings) {
    table.push_back({"embedding",
                     WeightRole::kMatrix,
                     {config.target_vocab, D},
                     {{{"model.shared.weight", "model.encoder.embed_tokens.weight",
                        "model.decoder.embed_tokens.weight", "lm_head.weight"},
                       {config.target_vocab, D}}}});
  } else {
    table.push_back({"encoder.embedding",
                     WeightRole::kMatrix,
                     {config.source_vocab, D},
                     {{{"model.encoder.embed_tokens.weight"}, {config.source_vocab, D}}}});
    table.push_back(
        {"decoder.embedding",
         WeightRole::kMatrix,
         {config.target_vocab, D},
         {{{"model.decoder.embed_tokens.weight", "lm_head.weight"}, {config.target_vocab, D}}}});
  }
  add_stack(table, config, encoder_stack(config));
  add_stack(table, config, decoder_stack(config));
  if (!config.tied_output) {
    table.push_back({"output.weight",
                     WeightRole::kMatrix,
                     {config.target_vocab, D},
                     {{{"lm_head.weight"}, {config.target_vocab, D}}}});
  }
  if (checkpoint.find("final_logits_bias")) {
    table.push_back({"output.bias",
                     WeightRole::kVector,
                     {config.target_vocab},
                     {{{"final_logits_bias"}, {config.target_vocab}}}});
  }
  return table;
}

Marian::Marian(Device& device, const Checkpoint& checkpoint, const ModelOptions& options)
    : config_(read_marian_config(checkpoint)),
      half_precision_(options.activations == DataType::kF16 ||
                      options.matrices == MatrixStorage::kF16),
      weights_(load_weights(device, checkpoint, config_, options)),
      network_(device, build_network(weights_, config_, options.activations),
               options.memory_limit) {}

Marian::Extents Marian::extents() const {
  return {config_.encoder_layers, config_.encoder_heads, config_.decoder_layers,
          config_.decoder_heads};
}

uint32_t Marian::batch_limit(uint32_t source_length, const GenerationSettings& settings) {
  return network_.batch_limit(source_length, settings);
}

void Marian::check_source(std::span<const uint32_t> ids) const {
  if (ids.empty()) throw ModelError("source text", "has no tokens", "");
  if (ids.size() > config_.max_positions)
    throw ModelError(
        "source text",
        fmt::format("has {} tokens, the model takes at most {}", ids.size(), config_.max_positions),
        "split the text into sentences");
  for (uint32_t id : ids) {
    if (id >= config_.source_vocab)
      throw ModelError(
          "source text",
          fmt::format("holds token id {}, the model's are below {}", id, config_.source_vocab),
          "tokenizer and model do not belong together");
  }
}

void Marian::check_target(std::span<const uint32_t> ids) const {
  if (ids.empty() || ids.size() > config_.max_positions)
    throw ModelError("target text",
                     fmt::format("has {} tokens, the model takes 1 to {}", ids.size(), config_.max_positions), "");
  for (uint32_t id : ids) {
    if (id >= config_.target_vocab)
      throw ModelError("target text",
                       fmt::format("holds token id {}, the model's are below {}", id, config_.target_vocab),
                       "tokenizer and model do not belong together");
  }
}

NamedArrays Marian::forward(const NamedArrays& inputs, std::span<const std::string> wanted) {
  ForwardRequest request;
  request.source = read_padded_ids(kFamily, inputs, "input_ids", config_.source_vocab, config_.max_positions);
  request.target =
      read_padded_ids(kFamily, inputs, "decoder_input_ids", config_.target_vocab, config_.max_positions);
  if (request.target.rows != request.source.rows)
    throw ModelError(
        "marian input `decoder_input_ids`",
        fmt::format("has {} rows, input_ids has {}", request.target.rows, request.source.rows), "");
  apply_mask(request.source, inputs);
  request.logits = wants(wanted, "logits");
  request.hidden_states = wants(wanted, "hidden_states");
  request.attentions = wants(wanted, "attentions");
  NamedArrays results = network_.forward(request);
  keep_wanted(results, wanted);
  return results;
}

NamedArrays Marian::generate(const NamedArrays& inputs, const GenerationConfig& config,
                             uint32_t n_best) {
  PaddedIds source = read_padded_ids(kFamily, inputs, "input_ids", config_.source_vocab, config_.max_positions);
  apply_mask(source, inputs);
  if (source.rows != 1)
    throw ModelError("marian input `input_ids`",
                     fmt::format("has {} rows, one is expected", source.rows), "");
  source.ids.resize(source.lengths[0]);
  GenerationRequest request;
  request.sources = {&source.ids, 1};
  request.settings = generation_settings(config, config_.max_positions);
  request.settings.n_best = n_best;
  const std::vector<Hypothesis> found = generate(request).items.at(0);

  size_t longest = 0;
  for (const Hypothesis& sequence : found) longest = std::max(longest, sequence.ids.size());
  NamedArray ids = {{found.size(), longest + 1}, {}}, scores = {{found.size()}, {}};
  for (const Hypothesis& sequence : found) {
    ids.values.push_back(request.settings.start);
    ids.values.insert(ids.values.end(), sequence.ids.begin(), sequence.ids.end());
    ids.values.insert(ids.values.end(), longest - sequence.ids.size(), request.settings.pad);
    scores.values.push_back(sequence.score);
  }
  return {{"output_ids", std::move(ids)}, {"sequences_scores", std::move(scores)}};
}

GenerationResult Marian::generate(const GenerationRequest& request) {
  check_settings(request.settings, config_.target_vocab, config_.max_positions);
  if (request.sources.empty()) return {};
  for (const std::vector<uint32_t>& source : request.sources) check_source(source);
  return network_.generate(request, request.settings.pad);
}

std::vector<double> Marian::score(std::span<const std::vector<uint32_t>> sources,
                                  std::span<const std::vector<uint32_t>> targets, uint32_t start,
                                  const HeadFactors& head_factors) {
  if (sources.empty()) return {};
  std::vector<std::vector<uint32_t>> fed;  // the start, and all but the last of the target
  for (size_t i = 0; i < sources.size(); ++i) {
    check_source(sources[i]);
    check_target(targets[i]);
    fed.push_back({start});
    fed.back().insert(fed.back().end(), targets[i].begin(), targets[i].end() - 1);
  }
  const ForwardResult result = network_.forward({.source = pad_ids(sources, pad()),
                                                 .target = pad_ids(fed, pad()),
                                                 .head_factors = head_factors,
                                                 .logits = true});
  return log_probabilities(result.at("logits"), targets);
}

SequenceAttention Marian::attention(const std::vector<uint32_t>& source,
                                    const std::vector<uint32_t>& target,
                                    const HeadFactors& head_factors) {
  check_source(source);
  check_target(target);
  const ForwardResult result = network_.forward({.source = pad_ids({&source, 1}, pad()),
                                                 .target = pad_ids({&target, 1}, pad()),
                                                 .head_factors = head_factors,
                                                 .attentions = true});
  const auto floats = [&](const char* name) {
    const std::vector<double>& values = result.at(name).values;
    return std::vector<float>(values.begin(), values.end());
  };
  return {floats("encoder_attentions"), floats("decoder_attentions"), floats("cross_attentions")};
}

}  // namespace mulciber
