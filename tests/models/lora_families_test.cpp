// Adapters of every decoder-only family, whatever its files fuse, group or transpose: logits of a
// checkpoint with changed matrices, compared with those of an adapter beside the weights.
#include <algorithm>
#include <cmath>
#include <optional>
#include <random>
#include <set>

#include "checkpoints/gguf.h"
#include "models/adapters/adapters.h"
#include "models/generation/decoder_architecture.h"
#include "models/generation/decoder_model.h"
#include "mulciber/translator.h"
#include "tests/catch.h"
#include "tests/device.h"
#include "tests/lora_families.h"
#include "tests/model_error.h"
#include "tests/small_decoder.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

void check_lora_family(const fs::path& model) {
  INFO(model.filename().string());
  const TemporaryFolder folder;
  const fs::path adapter = folder.path() / "adapter", changed = folder.path() / "changed";
  const Checkpoint checkpoint(model);
  write_adapted(checkpoint, targets(checkpoint, read_decoder_config(checkpoint)), adapter, changed);
  const ModelOptions beside = {
      .adapters = open_adapters(std::vector<AdapterFile>{{adapter.string(), "a"}})};
  const std::vector<double> expected = logits(changed, {});
  const double worst = difference(logits(model, beside), expected);
  INFO("largest difference " << worst);
  CHECK(worst < 2e-5);
  const double moved = difference(logits(model, {}), expected);
  INFO("of the adapter " << moved);
  CHECK(moved > 1e-2);
}

/// Checks adapters of experts that have matrices of their own.
void check_experts(const fs::path& model) {
  INFO(model.filename().string());
  const TemporaryFolder folder;
  const fs::path adapter = folder.path() / "adapter", changed = folder.path() / "changed";
  const Checkpoint checkpoint(model);
  const DecoderConfig config = read_decoder_config(checkpoint);
  const std::map<std::string, bool> all = targets(checkpoint, config, true);
  REQUIRE(all.size() > targets(checkpoint, config).size());
  write_adapted(checkpoint, all, adapter, changed);
  const std::vector<double> expected = logits(changed, {}), bare = logits(model, {});
  CHECK(difference(bare, expected) > 1e-2);
  for (const bool merged : {false, true}) {
    const auto with = [&](float scale) {
      return logits(
          model,
          {.adapters = open_adapters(std::vector<AdapterFile>{{adapter.string(), "a", scale}}),
           .merge_adapters = merged});
    };
    const double worst = difference(with(1), expected);
    INFO((merged ? "merged" : "beside") << ": largest difference " << worst);
    CHECK(worst < 2e-5);
    CHECK(difference(with(0), bare) == 0);
  }
  // Rounded activations choose other experts where two are nearly equal, so the bound is loose.
  const double halves = difference(
      logits(model, {.activations = DataType::kF16,
                     .adapters = open_adapters(std::vector<AdapterFile>{{adapter.string(), "a"}})}),
      logits(changed, {.activations = DataType::kF16}));
  INFO("activations in 16 bits " << halves);
  CHECK(halves < 2e-2);
}

/// Writes a GGUF adapter of all targets of a GGUF model.
fs::path write_gguf_adapter(const fs::path& model, const fs::path& to) {
  const Checkpoint checkpoint(model);
  std::mt19937 random(11);
  std::normal_distribution<float> normal;
  std::vector<AdapterMatrix> matrices;
  for (const auto& [module, transposed] : targets(checkpoint, read_decoder_config(checkpoint))) {
    const CheckpointTensor& matrix = checkpoint.at(module + ".weight");
    const uint64_t rows = matrix.shape[0], columns = matrix.shape[1];
    std::vector<float> a(kMadeRank * columns), b(rows * kMadeRank);
    for (float& value : a) value = normal(random) / std::sqrt(static_cast<float>(columns));
    for (float& value : b) value = normal(random) / std::sqrt(float{kMadeRank});
    matrices.push_back({matrix.name + ".lora_a", kMadeRank, columns, a});
    matrices.push_back({matrix.name + ".lora_b", rows, kMadeRank, b});
  }
  write_gguf_adapter(checkpoint.gguf()->architecture(), kMadeRank, matrices, to);
  return to;
}

}  // namespace

TEST_CASE("An adapter of every product is a checkpoint with changed matrices") {
  for (const char* family : {"gemma", "gptj", "olmo", "olmo_clip", "qwen2_moe", "falcon_mamba"})
    check_lora_family(data_dir() / "decoder_families" / family);
  check_lora_family(data_dir() / "gemma3");
  for (const char* family : {"gpt2", "qwen2", "qwen3"}) check_lora_family(tiny_model(family));
}

TEST_CASE("Experts take adapters, beside their weights and in them") {
  check_experts(data_dir() / "decoder_families/qwen2_moe");
  if (fixtures_dir().empty()) MULCIBER_SKIP("the reference models are not there");
  for (const char* family : {"mixtral", "qwen3_moe", "deepseek_v2"})
    check_experts(fixtures_dir() / "models2" / family);
}

TEST_CASE("A step through adapted experts has as many dispatches, however many experts there are") {
  if (fixtures_dir().empty()) MULCIBER_SKIP("the reference models are not there");
  const TemporaryFolder folder;
  const Checkpoint checkpoint(fixtures_dir() / "models2/mixtral");
  const DecoderConfig config = read_decoder_config(checkpoint);
  write_adapted(checkpoint, targets(checkpoint, config, true), folder.path() / "a",
                folder.path() / "changed");
  const auto dispatches = [&](const std::vector<AdapterFile>& adapters) {
    DecoderModel model(shared_device(), checkpoint, config,
                       {.folded_norms = false, .adapters = open_adapters(adapters)});
    SequenceSlots slots = slots_of(model.network(), 1, 32);
    return slots.step_program().nodes().size();
  };
  // Queries to values, the output projection and the router each add A, scales and B; each of the
  // two products of experts adds these and a sum, the gates one dispatch; the output product adds
  // three.
  CHECK(dispatches({{(folder.path() / "a").string(), "a"}}) ==
        dispatches({}) + config.layers.size() * (3 * 3 + 2 * 4 + 1) + 3);
}

TEST_CASE("The same of the reference models") {
  const fs::path fixtures = fixtures_dir();
  if (fixtures.empty()) MULCIBER_SKIP("the reference models are not there (MULCIBER_FIXTURES)");
  check_lora_family(fixtures / "models/llama");
  for (const char* family :
       {"phi", "phi3", "gemma2", "gpt_neox", "falcon", "falcon_new", "starcoder2", "stablelm",
        "olmo2", "granite", "cohere", "cohere2", "smollm3", "glm4", "mixtral", "qwen3_moe",
        "deepseek_v2", "deepseek_v3", "mamba"})
    check_lora_family(fixtures / "models2" / family);
}

TEST_CASE("Adapters beside weights in blocks, with norms and integers in products") {
  const fs::path fixtures = fixtures_dir();
  if (fixtures.empty()) MULCIBER_SKIP("the reference models are not there (MULCIBER_FIXTURES)");
  const TemporaryFolder folder;
  const fs::path whole = fixtures / "gguf/tiny-F32.gguf";
  const std::vector<OpenAdapter> adapters = open_adapters(std::vector<AdapterFile>{
      {write_gguf_adapter(whole, folder.path() / "a.gguf").string(), "a"}});
  const std::vector<double> expected = logits(whole, {.adapters = adapters});
  CHECK(difference(logits(whole, {}), expected) > 0.1);
  CHECK(difference(logits(whole, {.adapters = adapters, .merge_adapters = true}), expected) < 2e-5);
  CHECK(difference(logits(whole, {.folded_norms = true, .adapters = adapters}), expected) < 2e-6);
  const Capabilities& device = shared_device().capabilities();
  if (device.has(kSubgroupArithmetic) && device.max_storage_buffers >= 5) {
    const auto dispatches = [&](const std::vector<OpenAdapter>& beside) {
      const Checkpoint checkpoint(whole);
      DecoderModel model(shared_device(), checkpoint, read_decoder_config(checkpoint),
                         {.folded_norms = true, .adapters = beside});
      SequenceSlots slots = slots_of(model.network(), 1, 32);
      return std::pair(slots.step_program().nodes().size(), model.network().decoder.layers.size());
    };
    // The norms of both sublayers are dispatches of their own again.
    const auto [bare, layers] = dispatches({});
    CHECK(dispatches(adapters).first == bare + layers * (4 * 3 + 1 + 2));
  }
  for (const char* name : {"tiny-Q8_0.gguf", "tiny-Q4_0.gguf"}) {
    INFO(name);
    const fs::path model = fixtures / "gguf" / name;
    const std::vector<double> beside = logits(model, {.adapters = adapters});
    // The blocks' values and the adapter are merged in f16.
    const double merged = difference(
        logits(model,
               {.matrices = MatrixStorage::kF16, .adapters = adapters, .merge_adapters = true}),
        beside);
    INFO("merged in 16 bits " << merged);
    CHECK(merged < 5e-3);
    const double without = difference(logits(model, {.fast_activations = true}), logits(model, {}));
    const double integers =
        difference(logits(model, {.fast_activations = true, .adapters = adapters}), beside);
    INFO("activations in 8 bits " << integers << ", without the adapter " << without);
    // Both are zero on devices without integer dot products.
    CHECK(integers <= 3 * without);
    CHECK_THAT(model_error([&] {
                 logits(model, {.adapters = adapters, .merge_adapters = true});
               }).value_or("no error"),
               Catch::Matchers::ContainsSubstring("no adapter can be merged"));
  }
}

TEST_CASE("Translators have adapters merged") {
  const TemporaryFolder folder;
  const fs::path model = data_dir() / "marian", adapter = folder.path() / "adapter",
                 changed = folder.path() / "changed";
  fs::copy(model, changed);
  const Checkpoint checkpoint(model);
  std::map<std::string, bool> modules;
  for (const std::string& name : checkpoint.names())
    if (name.ends_with("_proj.weight") || name.find(".fc") != name.npos)
      if (name.ends_with(".weight")) modules[name.substr(0, name.rfind(".weight"))] = false;
  REQUIRE(modules.size() > 12);
  write_adapted(checkpoint, modules, adapter, changed);
  const auto translate = [&](const fs::path& from, const LoadOptions& options) {
    return Translator(shared_handle(), from.string(), options).translate("the old house", {});
  };
  const Translation expected = translate(changed, {}),
                    found = translate(model, {.adapters = {{adapter.string(), "a"}}});
  CHECK(found.ids == expected.ids);
  CHECK(std::abs(found.score - expected.score) < 1e-4);
  CHECK(std::abs(translate(model, {}).score - expected.score) > 1e-2);
  const std::string gpt2 = (lora_dir() / "gpt2_all").string();
  CHECK_THAT(model_error([&] {
               translate(model, {.adapters = {{gpt2, "a"}}});
             }).value_or(""),
             Catch::Matchers::ContainsSubstring("no such matrix"));
}
