// Adapters of experts that are one tensor: PEFT's adapters of parameters, compared with PEFT's own
// results in float64 (tools/fixtures/lora_experts.py), and GGUF files.
#include <algorithm>
#include <cmath>
#include <optional>

#include "models/adapters/adapters.h"
#include "models/adapters/low_rank_adapter.h"
#include "models/generation/decoder_architecture.h"
#include "models/generation/decoder_model.h"
#include "tests/catch.h"
#include "tests/device.h"
#include "tests/lora_experts.h"
#include "tests/model_error.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

using ExpertScales = std::vector<std::pair<fs::path, float>>;

std::vector<OpenAdapter> opened_experts(const ExpertScales& scales) {
  std::vector<AdapterFile> files;
  for (const auto& [path, scale] : scales)
    files.push_back({path.string(), std::to_string(files.size()), scale});
  return open_adapters(files);
}

std::vector<double> experts_with(const fs::path& model, const ExpertScales& scales,
                                 bool merged = false) {
  return logits(model, {.adapters = opened_experts(scales), .merge_adapters = merged});
}

fs::path gpt_oss() { return data_dir() / "decoder_families/gpt_oss_mxfp4"; }
fs::path qwen2_moe() { return data_dir() / "decoder_families/qwen2_moe"; }

std::vector<double> expected_expert_logits(const std::string& name) {
  const SafetensorsFile file(lora_dir() / (name.ends_with("_turned")
                                               ? "expected_turned.safetensors"
                                               : "expected_experts.safetensors"));
  const CheckpointTensor* tensor = file.find(name);
  REQUIRE(tensor);
  const std::vector<float> values = read_floats(*tensor, 0, tensor->elements());
  return {values.begin(), values.end()};
}

}  // namespace

TEST_CASE("Adapters of experts' parameters give the logits of PEFT in float64") {
  const std::vector<std::pair<std::string, ExpertScales>> cases = {
      {"gpt_oss", {}},
      {"gpt_oss", {{lora_dir() / "gpt_oss_experts", 0.0f}}},
      {"gpt_oss_experts", {{lora_dir() / "gpt_oss_experts", 1.0f}}},
      {"gpt_oss_down", {{lora_dir() / "gpt_oss_down", 1.0f}}},
      {"gpt_oss_both",
       {{lora_dir() / "gpt_oss_experts", 0.5f}, {lora_dir() / "gpt_oss_down", -1.25f}}},
      {"qwen2_moe", {}},
      {"qwen2_moe_experts", {{lora_dir() / "qwen2_moe_experts", 1.0f}}},
      {"qwen2_moe_turned", {{lora_dir() / "qwen2_moe_turned", 1.0f}}}};
  for (const auto& [name, scales] : cases) {
    INFO(name << " with " << scales.size() << " adapters");
    const fs::path model = name.starts_with("gpt_oss") ? gpt_oss() : qwen2_moe();
    const std::vector<double> expected = expected_expert_logits(name);
    const double beside = difference(experts_with(model, scales), expected);
    INFO("beside the weights " << beside);
    CHECK(beside < 5e-6);
    // The experts' weights of gpt-oss are in blocks, which stay as they are or become f16.
    const bool blocks = model == gpt_oss();
    ModelOptions options = {.matrices = blocks ? MatrixStorage::kF16 : MatrixStorage::kAsInFile,
                            .adapters = opened_experts(scales),
                            .merge_adapters = true};
    const double merged = difference(logits(model, options), expected);
    INFO("in the weights " << merged);
    CHECK(merged < (blocks ? 5e-3 : 5e-6));
    options.merge_adapters = false;
    options.activations = DataType::kF16;
    const double halves = difference(logits(model, options), expected);
    INFO("activations in 16 bits " << halves);
    CHECK(halves < 2e-2);
  }
  for (const char* name : {"gpt_oss_experts", "gpt_oss_down", "gpt_oss_both", "qwen2_moe_experts"})
    CHECK(difference(expected_expert_logits(name),
                     expected_expert_logits(name[0] == 'g' ? "gpt_oss" : "qwen2_moe")) > 0.1);
  CHECK_THAT(model_error([&] {
               experts_with(gpt_oss(), {{lora_dir() / "gpt_oss_experts", 1.0f}}, true);
             }).value_or("no error"),
             ContainsSubstring("no adapter can be merged"));
}

TEST_CASE("A and B of experts as PEFT turned them before release 0.19 are the same adapter") {
  for (const auto& [name, experts] : {std::pair("gpt_oss_experts", 4), {"qwen2_moe_experts", 6}}) {
    INFO(name);
    const TemporaryFolder folder;
    const fs::path model = experts == 4 ? gpt_oss() : qwen2_moe(),
                   turned = write_turned(name, static_cast<uint64_t>(experts), folder.path());
    CHECK(difference(experts_with(model, {{turned, 1}}),
                     experts_with(model, {{lora_dir() / name, 1}})) == 0);
  }
  // Where experts' matrices are square and the other parameter is missing, PEFT's release decides
  // the layout.
  const auto turned_of = [](const std::optional<std::string>& release, bool transposed) {
    const TemporaryFolder folder;
    return LowRankAdapter(changed_adapter(folder.path(), "gpt_oss_down",
                                          [&](json& config, MadeTensors&) {
                                            config.erase("peft_version");
                                            if (release) config["peft_version"] = *release;
                                          }))
        .turned(transposed);
  };
  CHECK(turned_of("0.18.1", false));
  CHECK(turned_of(std::nullopt, false));
  CHECK_FALSE(turned_of("0.18.1", true));
  CHECK_FALSE(turned_of("0.19.0", false));
}

TEST_CASE("GGUF adapters of experts do what PEFT's of the same do") {
  const TemporaryFolder folder;
  const fs::path of_gpt_oss = folder.path() / "gpt_oss.gguf", of_qwen = folder.path() / "qwen.gguf";
  write_stacked(read_parameters("gpt_oss_experts", 4, true), "gpt-oss", 4, of_gpt_oss);
  CHECK(difference(experts_with(gpt_oss(), {{of_gpt_oss, 1}}),
                   expected_expert_logits("gpt_oss_experts")) < 5e-6);
  // A GGUF file has one alpha, and no rsLoRA.
  const fs::path alone = changed_adapter(
      folder.path() / "alone", "qwen2_moe_experts", [](json& config, MadeTensors& tensors) {
        config["use_rslora"] = false;
        config.erase("alpha_pattern");
        std::erase_if(
            tensors, [](const auto& one) { return one.first.find(".experts.") == one.first.npos; });
      });
  write_stacked(read_parameters("qwen2_moe_experts", 6, false), "qwen2moe", 3, of_qwen);
  const std::vector<double> expected = experts_with(qwen2_moe(), {{alone, 1}});
  CHECK(difference(experts_with(qwen2_moe(), {{of_qwen, 1}}), expected) < 2e-6);
  CHECK(difference(experts_with(qwen2_moe(), {{of_qwen, 1}}, true), expected) < 2e-5);
  CHECK(difference(experts_with(qwen2_moe(), {}), expected) > 0.1);
  // In f32, adapters of all forms together give the same when merged, in any order.
  const fs::path modules = folder.path() / "modules";
  const Checkpoint checkpoint(qwen2_moe());
  write_adapted(checkpoint, targets(checkpoint, read_decoder_config(checkpoint), true), modules,
                folder.path() / "changed");
  const ExpertScales mixed = {
      {of_qwen, 0.5f}, {modules, -0.75f}, {lora_dir() / "qwen2_moe_experts", 1.25f}};
  const std::vector<double> beside = experts_with(qwen2_moe(), mixed);
  CHECK(difference(experts_with(qwen2_moe(), mixed, true), beside) < 2e-5);
  CHECK(difference(experts_with(qwen2_moe(), {mixed[2], mixed[0], mixed[1]}), beside) < 2e-5);
  CHECK(difference(experts_with(qwen2_moe(), {{modules, 0.0f}, {of_qwen, 0.0f}}),
                   experts_with(qwen2_moe(), {})) == 0);
}

TEST_CASE("A request chooses among adapters of experts in every form") {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "qwen.gguf", modules = folder.path() / "modules";
  write_stacked(read_parameters("qwen2_moe_experts", 6, false), "qwen2moe", 3, file);
  const Checkpoint checkpoint(qwen2_moe());
  const DecoderConfig config = read_decoder_config(checkpoint);
  write_adapted(checkpoint, targets(checkpoint, config, true), modules, folder.path() / "changed");
  const std::vector<uint32_t> ids = {5, 17, 3, 31, 11, 2, 9, 33, 21};
  const auto maps = [&](const ExpertScales& loaded,
                        const std::optional<std::vector<AdapterScale>>& wanted) {
    DecoderModel model(shared_device(), checkpoint, config, {.adapters = opened_experts(loaded)});
    const std::vector<float> found = model.attention(ids, chosen_adapters(model.network(), wanted));
    return std::vector<double>(found.begin(), found.end());
  };
  const ExpertScales all = {{file, 1}, {modules, 1}, {lora_dir() / "qwen2_moe_experts", 1}};
  const std::vector<double> bare = maps({}, std::nullopt);
  CHECK(difference(maps(all, std::vector<AdapterScale>()), bare) == 0);
  for (size_t i = 0; i < all.size(); ++i) {
    INFO(all[i].first.string());
    const std::vector<double> alone = maps({{all[i].first, 0.75f}}, std::nullopt);
    CHECK(difference(maps(all, std::vector<AdapterScale>{{std::to_string(i), 0.75f}}), alone) <
          1e-5);
    CHECK(difference(alone, bare) > 1e-3);
  }
}

TEST_CASE("Adapters of experts in either form for models in either format") {
  if (fixtures_dir().empty()) MULCIBER_SKIP("the reference models are not there");
  for (const auto& [name, architecture] :
       {std::pair("mixtral", "llama"), {"qwen3_moe", "qwen3moe"}, {"deepseek_v2", "deepseek2"}}) {
    const TemporaryFolder made;
    const fs::path folder = fixtures_dir() / "models2" / name, adapter = made.path() / "modules",
                   changed = made.path() / "changed", parameters = made.path() / "parameters",
                   turned = made.path() / "turned", file = made.path() / "adapter.gguf";
    const Checkpoint checkpoint(folder);
    std::map<std::string, bool> experts =
        targets(checkpoint, read_decoder_config(checkpoint), true);
    std::erase_if(experts,
                  [](const auto& one) { return one.first.find(".experts.") == one.first.npos; });
    write_adapted(checkpoint, experts, adapter, changed);
    const Layers layers = read_modules(adapter, {"gate_proj", "w1"}, {"up_proj", "w3"});
    write_parameters(layers, false, parameters);
    write_parameters(layers, true, turned);
    write_stacked(layers, architecture, kMadeRank, file);
    const std::vector<double> expected = logits(changed, {});
    CHECK(difference(logits(folder, {}), expected) > 1e-2);
    std::vector<fs::path> models = {folder};
    if (name == std::string("deepseek_v2"))
      models.push_back(data_dir() / "gguf_decoders/deepseek_v2.gguf");
    else
      models.push_back(folder / "model-F32.gguf");
    for (const fs::path& model : models)
      for (const fs::path& form : {parameters, turned, file})
        for (const bool merged : {false, true}) {
          INFO(model.string() << ", " << form.filename().string() << (merged ? " merged" : ""));
          const double worst = difference(experts_with(model, {{form, 1}}, merged), expected);
          INFO(worst);
          CHECK(worst < 2e-5);
        }
  }
}
