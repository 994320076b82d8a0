// What networks ask of NetworkWeights: the pass that declares weights, the pass that plans with
// them and the pass that loads them ask for one set.
#include "models/core/network_weights.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "checkpoints/config_reader.h"
#include "checkpoints/json.h"
#include "models/families/families.h"
#include "models/generation/decoder_architecture.h"
#include "models/networks/decoder_network.h"
#include "mulciber/error.h"
#include "tests/catch.h"
#include "tests/support.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

/// Passes requests on and notes their names.
class NotedWeights final : public NetworkWeights {
 public:
  explicit NotedWeights(NetworkWeights& to) : NetworkWeights(to), to_(to) {}

  std::vector<Tensor> segments(WeightSpec spec) override {
    of_table.push_back(spec.name);
    return to_.segments(std::move(spec));
  }
  Tensor computed(ComputedWeight weight) override {
    of_formulas.push_back(weight.name);
    return to_.computed(std::move(weight));
  }
  Tensor beside(const std::string& name, const Shape& shape, DataType type) override {
    of_adapters.push_back(name);
    return to_.beside(name, shape, type);
  }
  std::vector<float> values(const Tensor& weight) const override { return to_.values(weight); }

  /// Names of all requests; one that occurs twice was asked for twice.
  WeightNames all() const {
    WeightNames names = of_table;
    names.insert(names.end(), of_formulas.begin(), of_formulas.end());
    names.insert(names.end(), of_adapters.begin(), of_adapters.end());
    return names;
  }

  WeightNames of_table, of_formulas, of_adapters;

 private:
  NetworkWeights& to_;
};

WeightNames table_names(const WeightTable& table) {
  WeightNames names;
  for (const WeightSpec& spec : table) names.push_back(spec.name);
  return names;
}

/// The names that occur more than once.
WeightNames repeated(const WeightNames& names) {
  std::set<std::string> seen;
  WeightNames twice;
  for (const std::string& name : names)
    if (!seen.insert(name).second) twice.push_back(name);
  return twice;
}

PlannedWeights::Segments in_floats(const WeightTable& table) {
  PlannedWeights::Segments segments;
  for (const WeightSpec& spec : table) segments[spec.name] = {{DataType::kF32, spec.shape}};
  return segments;
}

WeightNames sorted(WeightNames names) {
  std::ranges::sort(names);
  return names;
}

DecoderConfig read_family(const DecoderFamily& family, const Json& json) {
  return family.read(ConfigReader(json, "config.json"));
}

/// Keys that every configuration of a small decoder needs.
Json small_config() {
  return {{"hidden_size", 16},           {"intermediate_size", 24}, {"num_hidden_layers", 2},
          {"num_attention_heads", 2},    {"vocab_size", 40},        {"max_position_embeddings", 64},
          {"rms_norm_eps", 1e-5},        {"hidden_act", "silu"},    {"num_key_value_heads", 2},
          {"tie_word_embeddings", false}};
}

/// Phi 3 with LongRoPE.
DecoderConfig long_rope_config() {
  Json json = small_config();
  json["original_max_position_embeddings"] = 32;
  json["rope_scaling"] = {{"type", "longrope"},
                          {"short_factor", {1.0, 1.0, 1.0, 1.0}},
                          {"long_factor", {2.0, 2.0, 2.0, 2.0}}};
  return read_family(kPhi3, json);
}

/// DeepSeek V3 with its names in Hugging Face's files: a dense layer, then one with experts.
DecoderConfig latent_config() {
  Json json = small_config();
  const Json more = {{"q_lora_rank", 12},
                     {"kv_lora_rank", 8},
                     {"qk_rope_head_dim", 4},
                     {"qk_nope_head_dim", 8},
                     {"v_head_dim", 8},
                     {"first_k_dense_replace", 1},
                     {"n_routed_experts", 4},
                     {"num_experts_per_tok", 2},
                     {"n_shared_experts", 1},
                     {"moe_intermediate_size", 8},
                     {"n_group", 2},
                     {"topk_group", 1},
                     {"rope_interleave", false},
                     {"routed_scaling_factor", 1.0}};
  json.update(more);
  return read_family(kDeepSeekV3, json);
}

/// Configurations of the models in the repository, by the names of their files, and of others.
std::vector<std::pair<std::string, DecoderConfig>> many_configs() {
  std::vector<std::pair<std::string, DecoderConfig>> configs = {
      {"Phi 3 with LongRoPE", long_rope_config()}, {"DeepSeek V3", latent_config()}};
  const auto add = [&](const std::filesystem::path& path) {
    configs.emplace_back(path.filename().string(), read_decoder_config(Checkpoint(path)));
  };
  for (const auto& entry : std::filesystem::directory_iterator(data_dir() / "decoder_families"))
    add(entry.path());
  for (const auto& entry : std::filesystem::directory_iterator(data_dir() / "gguf_decoders"))
    if (entry.path().extension() == ".gguf") add(entry.path());
  return configs;
}

}  // namespace

TEST_CASE("A decoder asks for each weight once, and for the same ones when it is planned") {
  for (const auto& [name, config] : many_configs()) {
    INFO(name);
    DeclaredWeights declared;
    NotedWeights first(declared);
    const DecoderNetwork network = decoder_network(config, first, config.context, {});
    CHECK(network.decoder.layers.size() == config.layers.size());
    CHECK(table_names(declared.table()) == first.of_table);
    CHECK(table_names(decoder_weight_table(config)) == first.of_table);
    CHECK(repeated(first.all()).empty());
    CHECK(first.of_adapters.empty());

    const PlannedWeights::Segments segments = in_floats(declared.table());
    PlannedWeights planned(segments);
    NotedWeights second(planned);
    const DecoderNetwork again = decoder_network(config, second, config.context, {});
    CHECK(second.all() == first.all());
    CHECK(again.sinks.size() ==
          (config.attention.sinks ? config.layers.size() * config.attention.heads : 0));
  }
}

TEST_CASE("A planned decoder asks for the adapters of each product once") {
  for (const auto& [name, config] : many_configs()) {
    INFO(name);
    const WeightTable table = decoder_weight_table(config);
    auto adapters = std::make_shared<NetworkAdapters>();
    WeightNames expected;
    const auto adapt = [&](const std::string& weight) {
      adapters->updates[weight] = {.down = {4, 8}, .up = {8, 4}, .count = 4};
      expected.push_back(lora_down(weight));
      expected.push_back(lora_up(weight));
    };
    for (const WeightSpec& spec : table)
      if (spec.role != WeightRole::kVector && takes_adapters(spec.name)) adapt(spec.name);
    // Adapters of the joint up-projection also apply to separate ones.
    if (config.attention.latent && !config.files.names.key_value_up)
      for (size_t i = 0; i < config.layers.size(); ++i)
        adapt("layers." + std::to_string(i) + ".key_value_up.weight");
    const PlannedWeights::Segments segments = in_floats(table);
    PlannedWeights planned(segments);
    NotedWeights noted(planned);
    decoder_network(config, noted, config.context, {.adapters = adapters});
    CHECK(sorted(noted.of_adapters) == sorted(expected));
  }
}

TEST_CASE("Computed weights of a decoder follow from its context") {
  const DecoderConfig config = long_rope_config();
  const auto computed = [&](uint32_t positions) {
    DeclaredWeights declared;
    NotedWeights noted(declared);
    decoder_network(config, noted, positions, {});
    return std::pair(noted.of_formulas, declared.computed_bytes());
  };
  // Angles are in f32, for 8 numbers of each position.
  CHECK(computed(32) == std::pair(WeightNames{"rope.0"}, uint64_t{32 * 8 * 4}));
  CHECK(computed(64) == std::pair(WeightNames{"rope.0", "rope.0.long"}, uint64_t{2 * 64 * 8 * 4}));
}

TEST_CASE("Computed weights are not computed before weights are loaded") {
  const auto ask = [](NetworkWeights& weights) {
    bool called = false;
    const Tensor tensor = weights.computed({"table", {3, 4}, [&] {
                                              called = true;
                                              return std::vector<float>(12);
                                            }});
    CHECK(tensor.shape == Shape{3, 4});
    CHECK(tensor.type == DataType::kF32);
    CHECK(weights.values(tensor) == std::vector<float>(12));
    CHECK_FALSE(called);
  };
  DeclaredWeights declared;
  ask(declared);
  CHECK(declared.table().empty());
  CHECK(declared.computed_bytes() == 256);  // a whole block of the allocator
  const PlannedWeights::Segments none = {};
  PlannedWeights planned(none);
  ask(planned);
}

TEST_CASE("A part of a network has a prefix in the names of its weights") {
  DeclaredWeights declared;
  NotedWeights noted(declared);
  PartWeights part(noted, "vision.");
  part.tensor({"positions", WeightRole::kVector, {2, 3}, {{{"embeddings.weight"}, {2, 3}}}});
  part.linear("out", {{{"out_proj"}, 3}}, 2, true);
  part.computed({"angles", {4}, [] { return std::vector<float>(4); }});
  part.beside(lora_down("out.weight"), {1, 2}, DataType::kF32);
  CHECK(noted.of_table == WeightNames{"vision.positions", "vision.out.weight", "vision.out.bias"});
  CHECK(noted.of_formulas == WeightNames{"vision.angles"});
  CHECK(noted.of_adapters == WeightNames{"vision.out.weight.lora_down"});
  // WeightNames in files stay.
  CHECK(declared.table()[0].sources[0].names == WeightNames{"embeddings.weight"});
  CHECK(declared.table()[2].sources[0].names == WeightNames{"out_proj.bias"});
}

TEST_CASE("A weight of several types is a linear layer's alone") {
  const PlannedWeights::Segments segments = {
      {"layers.3.qkv.weight", {{DataType::kQ4_K, {512, 256}}, {DataType::kQ6_K, {256, 256}}}}};
  PlannedWeights planned(segments);
  const WeightSpec spec =
      linear_matrix("layers.3.qkv", {{{"q"}, 256}, {{"k"}, 256}, {{"v"}, 256}}, 256);
  CHECK_THROWS_AS(planned.tensor(spec), ShapeError);
  CHECK_THROWS_WITH(planned.tensor(spec),
                    ContainsSubstring("layers.3.qkv.weight") && ContainsSubstring("2 tensors"));
  const Linear linear = planned.linear(spec, std::nullopt);
  CHECK(linear.weight.type == DataType::kQ4_K);
  REQUIRE(linear.more_segments.size() == 1);
  CHECK(linear.more_segments[0].type == DataType::kQ6_K);
  CHECK_FALSE(linear.column_order);
}

TEST_CASE("The order of columns is no segment of a linear layer") {
  const PlannedWeights::Segments segments = {
      {"up.weight", {{DataType::kQ4_K, {8, 256}}, {DataType::kU32, {256}}}}};
  PlannedWeights planned(segments);
  WeightSpec spec = linear_matrix("up", {{{"up_proj"}, 8}}, 256);
  spec.any_column_order = true;
  const Linear linear = planned.linear(spec, std::nullopt);
  CHECK(linear.weight.type == DataType::kQ4_K);
  CHECK(linear.more_segments.empty());
  REQUIRE(linear.column_order);
  CHECK(linear.column_order->shape == Shape{256});
}
