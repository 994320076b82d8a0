// LoRA adapters: logits compared with those of weights that were changed in float64
// (tools/fixtures/lora.py), and merged adapters compared with adapters beside the weights.
#include <algorithm>
#include <cmath>
#include <map>

#include "models/adapters/adapter_stack.h"
#include "models/adapters/adapters.h"
#include "models/generation/decoder_architecture.h"
#include "models/generation/decoder_model.h"
#include "mulciber/text_generator.h"
#include "tests/catch.h"
#include "tests/device.h"
#include "tests/lora_files.h"
#include "tests/small_decoder.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

using Scales = std::vector<std::pair<std::string, float>>;  // adapters in tests/data/lora

std::vector<OpenAdapter> opened(const Scales& scales) {
  std::vector<AdapterFile> files;
  for (const auto& [name, scale] : scales)
    files.push_back({.path = (lora_dir() / name).string(), .name = {}, .scale = scale});
  return open_adapters(files);
}

std::vector<double> lora_logits(const fs::path& model, ModelOptions options) {
  const std::vector<double> ids = {257, 32, 104, 259, 32, 7, 200, 262, 110, 261, 1};
  const Checkpoint checkpoint(model);
  DecoderModel loaded(shared_device(), checkpoint, read_decoder_config(checkpoint), options);
  const std::vector<std::string> wanted = {"logits"};
  return loaded.forward({{"input_ids", {{1, ids.size()}, ids}}}, wanted).at("logits").values;
}

std::vector<double> expected_logits(const std::string& name) {
  static const SafetensorsFile file(lora_dir() / "expected.safetensors");
  const CheckpointTensor* tensor = file.find(name);
  REQUIRE(tensor);
  const std::vector<float> values = read_floats(*tensor, 0, tensor->elements());
  return {values.begin(), values.end()};
}

struct Case {
  const char* expected;
  const char* model;
  Scales scales;
};
const Case kCases[] = {
    {"gpt2", "gpt2", {}},
    {"gpt2_all", "gpt2", {{"gpt2_all", 1}}},
    {"gpt2_all", "gpt2.gguf", {{"gpt2_all.gguf", 1}}},
    {"qwen2", "qwen2", {}},
    {"qwen2", "qwen2", {{"qwen2_all", 0}, {"qwen2_some", 0}}},
    {"qwen2_all", "qwen2", {{"qwen2_all", 0.75f}}},
    {"qwen2_all", "qwen2", {{"qwen2_some", 0}, {"qwen2_all", 0.75f}}},
    {"qwen2_all", "qwen2.gguf", {{"qwen2_all.gguf", 0.75f}}},
    {"qwen2_some", "qwen2", {{"qwen2_some", -1}}},
    {"qwen2_both", "qwen2", {{"qwen2_all", 0.5f}, {"qwen2_some", 1.25f}}},
    {"qwen2_both", "qwen2", {{"qwen2_some", 1.25f}, {"qwen2_all", 0.5f}}},
    {"qwen3_head", "qwen3", {{"qwen3_head", 1}}},
};

}  // namespace

TEST_CASE("Logits with adapters are those of changed weights, in float64") {
  for (const Case& one : kCases) {
    INFO(one.expected << " of " << one.model << " with " << one.scales.size() << " adapters");
    const std::vector<double> expected = expected_logits(one.expected);
    const fs::path model = tiny_model(one.model);
    const double beside =
        difference(lora_logits(model, {.adapters = opened(one.scales)}), expected);
    INFO("beside the weights " << beside);
    CHECK(beside < 5e-6);
    const double merged = difference(
        lora_logits(model, {.adapters = opened(one.scales), .merge_adapters = true}), expected);
    INFO("in weights of 16 bits " << merged);
    CHECK(merged < (one.scales.empty() ? 5e-6 : 5e-3));
  }
  // The adapters matter, or the test would compare nothing.
  CHECK(difference(expected_logits("qwen2_all"), expected_logits("qwen2")) > 0.1);
  CHECK(difference(expected_logits("qwen2_some"), expected_logits("qwen2")) > 0.1);
  CHECK(difference(expected_logits("qwen3_head"), expected_logits("qwen2")) > 0.1);
}

TEST_CASE("In f32 an adapter in the weights is one beside them") {
  const TemporaryFolder folder;
  for (const char* family : {"gpt2", "qwen2", "qwen3"})
    write_in_f32(tiny_model(family), folder.path() / family);
  for (const Case& one : kCases) {
    if (fs::path(one.model).has_extension() || one.scales.empty()) continue;
    INFO(one.expected);
    const fs::path model = folder.path() / one.model;
    const std::vector<double> merged =
        lora_logits(model, {.adapters = opened(one.scales), .merge_adapters = true});
    const double worst = difference(lora_logits(model, {.adapters = opened(one.scales)}), merged);
    INFO("largest difference " << worst);
    CHECK(worst < 1e-5);
  }
}

TEST_CASE("Adapters and activations in 16 bits") {
  const std::vector<double> expected = expected_logits("qwen2_both");
  const std::vector<OpenAdapter> adapters = opened({{"qwen2_all", 0.5f}, {"qwen2_some", 1.25f}});
  const double matrices = difference(
      lora_logits(tiny_model("qwen2"), {.matrices = MatrixStorage::kF16, .adapters = adapters}),
      expected);
  INFO("matrices in 16 bits " << matrices);
  CHECK(matrices < 5e-3);
  const double activations = difference(
      lora_logits(tiny_model("qwen2"), {.activations = DataType::kF16, .adapters = adapters}),
      expected);
  INFO("activations in 16 bits " << activations);
  CHECK(activations < 2e-2);
}

TEST_CASE("What adapters take on the device is planned") {
  const Checkpoint checkpoint(tiny_model("qwen2"));
  const ModelOptions options = {.sequences = 1,
                                .adapters = opened({{"qwen2_all", 1}, {"qwen2_some", 1}})};
  DecoderModel model(shared_device(), checkpoint, read_decoder_config(checkpoint), options);
  const uint64_t with = model.memory_plan().weight_bytes;
  CHECK(with == model.weight_bytes());
  DecoderModel bare(shared_device(), checkpoint, read_decoder_config(checkpoint), {.sequences = 1});
  CHECK(with > bare.memory_plan().weight_bytes);
  CHECK(model.memory_plan().context_bytes > bare.memory_plan().context_bytes);
}

TEST_CASE("An adapter's products are two for each adapted one, however many adapters there are") {
  const auto dispatches = [](const Scales& scales) {
    const Checkpoint checkpoint(tiny_model("qwen2"));
    DecoderModel model(shared_device(), checkpoint, read_decoder_config(checkpoint),
                       {.folded_norms = false, .adapters = opened(scales)});
    SequenceSlots slots = slots_of(model.network(), 1, 32);
    return slots.step_program().nodes().size();
  };
  const size_t bare = dispatches({});
  // Queries to values, the output projection, gate and up, and down each add A, scales and B; the
  // gates, which a product without adapters applies itself, add one dispatch.
  CHECK(dispatches({{"qwen2_all", 1}}) == bare + 2 * (4 * 3 + 1));
  CHECK(dispatches({{"qwen2_all", 1}, {"qwen2_some", 1}}) == bare + 2 * (4 * 3 + 1));
}
