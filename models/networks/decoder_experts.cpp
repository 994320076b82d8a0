#include "models/networks/decoder_experts.h"

#include <cstring>

#include "models/networks/decoder_feed_forward.h"

namespace mulciber {
namespace {

/// Rows of each expert's matrix that come from one tensor.
struct ExpertRows {
  const char* part;  // DecoderNames::expert_up and its like
  uint64_t rows;
  uint64_t rows_in_file = 0, first_row = 0;
};

/// Sources of the experts' matrices, each of these rows one below the other.
std::vector<WeightSource> expert_sources(const DecoderBuild& build, uint32_t layer,
                                         const std::vector<ExpertRows>& of_each, uint64_t columns) {
  const uint64_t E = build.config.feed_forward.experts->count;
  std::vector<WeightSource> sources;
  for (uint64_t e = 0; e < E; ++e) {
    for (const ExpertRows& from : of_each) {
      std::string part = from.part;
      const size_t number = part.find("{}");
      if (number != part.npos) {
        part.replace(number, 2, std::to_string(e));
        sources.push_back(
            {with_ending(build.in_layer(layer, part.c_str()), ".weight"), {from.rows, columns}});
      } else if (e == 0) {
        // One tensor holds the matrices of all experts.
        sources.push_back({any_ending(build.in_layer(layer, from.part), ".weight"),
                           {E, from.rows, columns},
                           build.config.files.experts,
                           from.rows_in_file,
                           from.first_row});
      }
    }
  }
  return sources;
}

/// (experts, 2 F, D), interleaved rows of gate and up.
Tensor expert_up(const DecoderBuild& build, uint32_t layer) {
  const DecoderNames& names = build.names();
  const uint64_t D = build.config.width, F = build.config.feed_forward.hidden;
  const uint64_t E = build.config.feed_forward.experts->count;
  WeightSpec spec = {
      layer_prefix(layer) + "experts.up", WeightRole::kExperts, {E, 2 * F, D}, {}, 2};
  std::vector<ExpertRows> rows;
  if (!names.expert_gate_up) {
    rows.push_back({names.expert_gate, F});
    rows.push_back({names.expert_up, F});
  } else if (build.config.files.gates_above) {
    rows.push_back({names.expert_gate_up, F, 2 * F, 0});
    rows.push_back({names.expert_gate_up, F, 2 * F, F});
  } else {
    rows.push_back({names.expert_gate_up, 2 * F});
    spec.interleaved = 1;  // the file's rows are already interleaved
  }
  spec.sources = expert_sources(build, layer, rows, D);
  return build.weights.tensor(std::move(spec));
}

/// (experts, D, F).
Tensor expert_down(const DecoderBuild& build, uint32_t layer) {
  const uint64_t D = build.config.width, F = build.config.feed_forward.hidden;
  const uint64_t E = build.config.feed_forward.experts->count;
  return build.weights.tensor(
      {layer_prefix(layer) + "experts.down",
       WeightRole::kExperts,
       {E, D, F},
       expert_sources(build, layer, {ExpertRows{build.names().expert_down, D}}, F)});
}

void add_expert_biases(const DecoderBuild& build, uint32_t layer, MixtureOfExperts& mixture) {
  const DecoderNames& names = build.names();
  const uint64_t D = build.config.width, F = build.config.feed_forward.hidden;
  const uint64_t E = build.config.feed_forward.experts->count;
  const auto bias = [&](const char* part, uint64_t rows) {
    const WeightNames file = build.in_layer(layer, part);
    WeightNames either = with_ending(file, ".bias");
    for (const std::string& old : with_ending(file, "_bias")) either.push_back(old);
    return WeightSource{either, {E, rows}};
  };
  WeightSpec up = {layer_prefix(layer) + "experts.up.bias", WeightRole::kVector, {E * 2 * F}, {}};
  if (names.expert_gate_up) {
    up.sources = {bias(names.expert_gate_up, 2 * F)};
  } else {
    up.sources = {bias(names.expert_gate, F), bias(names.expert_up, F)};
    up.interleaved = 2;
    up.interleaves_elements = true;
  }
  mixture.up_bias = build.weights.tensor(std::move(up));
  mixture.down_bias = build.weights.tensor({layer_prefix(layer) + "experts.down.bias",
                                            WeightRole::kVector,
                                            {E * D},
                                            {bias(names.expert_down, D)}});
}

/// The choice of experts where it is more than a softmax.
std::optional<RouteOptions> expert_choice(const DecoderBuild& build, uint32_t layer) {
  const DecoderExperts& experts = *build.config.feed_forward.experts;
  if (!experts.routing) return std::nullopt;
  const DecoderRouting& routing = *experts.routing;
  RouteOptions choice = {.experts_per_token = experts.per_token,
                         .sigmoid = routing.sigmoid,
                         .groups = routing.groups,
                         .groups_used = routing.groups_used,
                         .two_best = routing.two_best,
                         .normalize = experts.normalized,
                         .scale = routing.scale};
  if (routing.bias)
    choice.bias = build.vector(layer_prefix(layer) + "router.choice",
                               build.in_layer(layer, build.names().router_choice), {experts.count});
  return choice;
}

void add_shared_expert(const DecoderBuild& build, uint32_t layer, MixtureOfExperts& mixture) {
  const DecoderExperts& experts = *build.config.feed_forward.experts;
  const DecoderNames& names = build.names();
  const std::string name = layer_prefix(layer) + "shared.";
  if (experts.shared_hidden > 0)
    mixture.shared = gated_feed_forward(build, layer, name,
                                        {names.shared_gate, names.shared_up, names.shared_down},
                                        experts.shared_hidden);
  if (experts.shared_gate)
    mixture.shared_gate =
        build.linear(name + "gate", {{build.in_layer(layer, names.shared_router), 1}},
                     build.config.width, false);
}

}  // namespace

Tensor decoder_expert_rules(const DecoderBuild& build) {
  // Computed weights are floats, so the words are stored as floats of equal bits.
  const std::vector<uint32_t> words = MixtureOfExperts::rules_words();
  Tensor rules = build.weights.computed({"experts.rules", {words.size()}, [words] {
                                           std::vector<float> bits(words.size());
                                           std::memcpy(bits.data(), words.data(),
                                                       words.size() * sizeof(float));
                                           return bits;
                                         }});
  rules.type = DataType::kU32;
  return rules;
}

MixtureOfExperts decoder_experts(const DecoderBuild& build, uint32_t layer, const Tensor& rules) {
  const DecoderFeedForward& feed_forward = build.config.feed_forward;
  const DecoderExperts& experts = *feed_forward.experts;
  const std::string name = layer_prefix(layer);
  MixtureOfExperts mixture = {
      .router = build.linear(name + "router",
                             {{build.in_layer(layer, build.names().router), experts.count}},
                             build.config.width, experts.router_bias),
      .rules = rules,
      .activation = feed_forward.activation,
      .gated = true,
      .limit = experts.limit,
      .experts_per_token = experts.per_token,
      .normalize = experts.normalized,
      .choice = expert_choice(build, layer)};
  mixture.up = expert_up(build, layer);
  mixture.down = expert_down(build, layer);
  mixture.up_low_rank = build.low_rank(name + "experts.up");
  mixture.down_low_rank = build.low_rank(name + "experts.down");
  if (feed_forward.bias) add_expert_biases(build, layer, mixture);
  add_shared_expert(build, layer, mixture);
  return mixture;
}

}  // namespace mulciber
