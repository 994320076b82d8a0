#include "models/families/marian.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "models/networks/transformer_network.h"

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
                const std::vector<std::string>& parts, uint64_t rows_of_part, uint64_t columns) {
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
    table.push_back(
        {stack.name + ".positions",
         WeightRole::kVector,
         {config.context, D},
         {{{fmt::format("model.{}.embed_positions.weight", stack.name)}, {config.context, D}}}});
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

std::unique_ptr<TransformerNetwork> build_network(const Weights& weights,
                                                  const MarianConfig& config,
                                                  DataType activations) {
  auto result = std::make_unique<TransformerNetwork>();
  TransformerNetwork& network = *result;
  network.activations = activations;
  network.source_vocabulary = config.source_vocab;
  network.target_vocabulary = config.target_vocab;
  network.width = config.d_model;
  network.widest_hidden = std::max(config.encoder_ffn, config.decoder_ffn);
  network.context = config.context;

  network.source_embedding = token_embedding(weights, config, "encoder");
  const HeadSizes encoder_sizes = {config.encoder_heads, config.encoder_head_dim(),
                                   config.encoder_head_dim()};
  for (uint32_t i = 0; i < config.encoder_layers; ++i)
    network.encoder.layers.push_back(layer_of<EncoderLayer>(
        weights, config, fmt::format("encoder.layers.{}.", i), encoder_sizes));

  network.target_embedding = token_embedding(weights, config, "decoder");
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
  return result;
}

MemoryPrediction predict_memory(const Checkpoint& checkpoint, const MarianConfig& config,
                                const ModelOptions& options) {
  const WeightTable table = marian_weight_table(config, checkpoint);
  return {.weight_bytes = weight_bytes(table, checkpoint, "marian", options.matrices) +
                          uint64_t{config.context} * config.d_model * sizeof(float)};
}

Extents extents_of(const MarianConfig& config) {
  return {.vocabulary = config.target_vocab,
          .context = config.context,
          .encoder_layers = config.encoder_layers,
          .encoder_heads = config.encoder_heads,
          .decoder_layers = config.decoder_layers,
          .decoder_heads = config.decoder_heads,
          .cross_layers = config.decoder_layers,
          .cross_heads = config.decoder_heads};
}

Weights load_weights(Device& device, const Checkpoint& checkpoint, const MarianConfig& config,
                     const ModelOptions& options) {
  const MemoryPrediction plan = predict_memory(checkpoint, config, options);
  if (options.on_plan) options.on_plan(plan);
  require_memory(device, plan.weight_bytes, options.memory_limit, "the model");
  Weights weights(device, marian_weight_table(config, checkpoint), checkpoint, "marian",
                  options.matrices, options.on_progress);
  if (config.static_positions) {
    weights.add(device, "positions", {config.context, config.d_model},
                sinusoidal_positions(config.context, config.d_model));
  }
  return weights;
}

EncoderDecoderParts load_parts(Device& device, const Checkpoint& checkpoint,
                               const MarianConfig& config, const ModelOptions& options) {
  Weights weights = load_weights(device, checkpoint, config, options);
  std::unique_ptr<TransformerNetwork> network = build_network(weights, config, options.activations);
  return {.family = "marian",
          .generation = config.generation,
          .extents = extents_of(config),
          .half_precision =
              options.activations == DataType::kF16 || options.matrices == MatrixStorage::kF16,
          .weights = std::move(weights),
          .network = std::move(network)};
}

class MarianArchitecture : public Architecture {
 public:
  explicit MarianArchitecture(const Checkpoint& checkpoint)
      : checkpoint_(checkpoint), config_(read_marian_config(checkpoint)) {}

  const GenerationConfig& generation() const override { return config_.generation; }
  Extents extents() const override { return extents_of(config_); }
  MemoryPrediction predict(const Capabilities&, const ModelOptions& options) const override {
    return predict_memory(checkpoint_, config_, options);
  }
  std::unique_ptr<Model> load(Device& device, const ModelOptions& options) const override {
    return std::make_unique<Marian>(device, checkpoint_, config_, options);
  }

 private:
  const Checkpoint& checkpoint_;
  MarianConfig config_;
};

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
  // The one tensor of all known models that has a dimension to spare.
  if (checkpoint.find("final_logits_bias")) {
    table.push_back({"output.bias",
                     WeightRole::kVector,
                     {config.target_vocab},
                     {{{"final_logits_bias"}, {1, config.target_vocab}}}});
  }
  return table;
}

Marian::Marian(Device& device, const Checkpoint& checkpoint, const MarianConfig& config,
               const ModelOptions& options)
    : EncoderDecoderModel(device, load_parts(device, checkpoint, config, options),
                          options.memory_limit) {}

std::unique_ptr<const Architecture> read_marian(const Checkpoint& checkpoint) {
  return std::make_unique<const MarianArchitecture>(checkpoint);
}

}  // namespace mulciber
