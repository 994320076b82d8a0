#include "models/networks/decoder_network.h"

#include <algorithm>
#include <string_view>

#include "models/networks/decoder_attention.h"
#include "models/networks/decoder_build.h"
#include "models/networks/decoder_experts.h"
#include "models/networks/decoder_feed_forward.h"
#include "models/networks/decoder_norms.h"
#include "models/networks/decoder_state_space.h"
#include "models/networks/decoder_support.h"

namespace mulciber {
namespace {

/// Computed weights, which layers share.
struct SharedTensors {
  std::vector<CausalAttention::Rope> ropes;
  Tensor expert_rules;
};

TokenEmbedding token_embedding(const DecoderBuild& build) {
  const DecoderConfig& config = build.config;
  const Shape shape = {config.vocabulary, config.width};
  const auto file = [&](const char* part) { return with_ending(build.global(part), ".weight"); };
  TokenEmbedding embedding = {
      .table = build.weights.tensor({"embedding",
                                     WeightRole::kMatrix,
                                     shape,
                                     {WeightSource{file(build.names().embedding), shape}}}),
      .scale = config.embedding.multiplier / build.stream_scale()};
  if (config.embedding.learned_positions)
    embedding.positions =
        build.vector("positions", file(build.names().positions), {config.context, config.width});
  return embedding;
}

Linear output_product(const DecoderBuild& build, const Tensor& embedding) {
  const DecoderConfig& config = build.config;
  const Shape shape = {config.vocabulary, config.width};
  Linear output = {.weight = embedding};
  if (!config.output.tied) {
    WeightSpec matrix = {"output.weight", WeightRole::kMatrix, shape, {}};
    matrix.sources.push_back({with_ending(build.output(), ".weight"), shape});
    output.weight = build.weights.tensor(std::move(matrix));
  }
  if (config.output.bias)
    output.bias =
        build.vector("output.bias", with_ending(build.output(), ".bias"), {config.vocabulary});
  output.low_rank = build.low_rank("output.weight");
  return output;
}

void add_layer(const DecoderBuild& build, uint32_t index, const SharedTensors& shared,
               DecoderNetwork& network) {
  const DecoderConfig& config = build.config;
  CausalLayer layer;
  if (config.state_space) {
    layer.mixer = mixer_of(decoder_state_space(build, index));
  } else {
    layer.attention = decoder_attention(build, index, shared.ropes);
    if (config.attention.sinks) {
      const std::vector<float> sinks = decoder_sinks(build, index);
      network.sinks.insert(network.sinks.end(), sinks.begin(), sinks.end());
    }
    if (config.feed_forward.experts && !config.layers[index].dense)
      layer.feed_forward = decoder_experts(build, index, shared.expert_rules);
    else
      layer.feed_forward = decoder_feed_forward(build, index);
  }
  add_norms(build, index, layer);
  network.decoder.layers.push_back(std::move(layer));
}

}  // namespace

bool takes_adapters(const std::string& weight) {
  constexpr std::string_view kProducts[] = {
      "qkv",          "out",    "up",       "down", "query_down", "query",   "key_value_down",
      "key_value_up", "key_up", "value_up", "in",   "step_down",  "step_up", "pairs",
      "router",       "gate"};
  constexpr std::string_view kEnding = ".weight";
  if (weight == "output.weight") return true;
  std::string_view part = weight;
  if (part.ends_with(kEnding)) part.remove_suffix(kEnding.size());
  return std::ranges::count(kProducts, part.substr(part.rfind('.') + 1)) > 0;
}

DecoderNetwork decoder_network(const DecoderConfig& config, NetworkWeights& weights,
                               uint32_t positions, const NetworkTypes& types) {
  require_supported(config);
  require_types(config, types);
  const DecoderBuild build = {config, weights, types};
  DecoderNetwork network;
  network.activations = types.activations;
  network.cache = types.cache;
  network.vocabulary = config.vocabulary;
  network.context = positions;
  network.stream_scale = build.stream_scale();
  network.sees = config.sees;
  if (types.adapters) network.adapters = types.adapters->adapters;
  network.embedding = token_embedding(build);

  CausalDecoder& decoder = network.decoder;
  decoder.output = output_product(build, network.embedding.table);
  decoder.logit_scale = config.output.multiplier;
  decoder.logit_cap = config.output.soft_cap;
  if (config.norms.place != NormPlace::kAfter) decoder.first_norm = decoder_first_norm(build);
  SharedTensors shared = {.ropes = decoder_ropes(build, positions)};
  if (config.feed_forward.experts) shared.expert_rules = decoder_expert_rules(build);
  for (uint32_t i = 0; i < config.layers.size(); ++i) add_layer(build, i, shared, network);
  join_norms(decoder, types.folded_norms);
  return network;
}

DeclaredWeights declare_decoder(const DecoderConfig& config, uint32_t positions) {
  DeclaredWeights weights;
  decoder_network(config, weights, positions, {});
  return weights;
}

WeightTable decoder_weight_table(const DecoderConfig& config) {
  return declare_decoder(config, config.context).table();
}

}  // namespace mulciber
