// Decoder-only models beside float64 values of reference models, which are not part of the
// repository.
#include <cmath>

#include "models/generation/decoder_model.h"
#include "tests/catch.h"
#include "tests/device.h"
#include "tests/reference_values.h"
#include "tests/small_decoder.h"
#include "tests/support.h"
#include "tests/verify_report.h"

using namespace mulciber;
using namespace mulciber::tests;

TEST_CASE("Every decoder-only reference model meets its values") {
  if (fixtures_dir().empty()) MULCIBER_SKIP("the reference models are not here");
  const auto [folder, expected] = GENERATE(
      table<std::string, std::string>({{"models/gpt2", "models/gpt2"},
                                       {"models/llama", "models/llama"},
                                       {"models/llama_realistic", "models/llama_realistic"},
                                       {"models/qwen2", "models/qwen2"},
                                       {"variants/qwen2_sharded", "models/qwen2"},
                                       {"models/qwen3", "models/qwen3"},
                                       {"models/gemma3", "models/gemma3"},
                                       {"models2/phi3", "models2/phi3"},
                                       {"models2/phi3/model-F32.gguf", "models2/phi3"},
                                       {"models2/mixtral", "models2/mixtral"},
                                       {"models2/mixtral/model-F32.gguf", "models2/mixtral"},
                                       {"models2/qwen3_moe", "models2/qwen3_moe"},
                                       {"models2/qwen3_moe/model-F32.gguf", "models2/qwen3_moe"},
                                       {"models2/deepseek_v2", "models2/deepseek_v2"},
                                       {"models2/deepseek_v3", "models2/deepseek_v3"},
                                       {"models2/gpt_oss", "models2/gpt_oss"},
                                       {"models2/gemma2", "models2/gemma2"},
                                       {"models2/gemma2/model-F32.gguf", "models2/gemma2"},
                                       {"models2/olmo2", "models2/olmo2"},
                                       {"models2/olmo2/model-F32.gguf", "models2/olmo2"},
                                       {"models2/granite", "models2/granite"},
                                       {"models2/granite/model-F32.gguf", "models2/granite"},
                                       {"models2/phi", "models2/phi"},
                                       {"models2/gpt_neox", "models2/gpt_neox"},
                                       {"models2/falcon", "models2/falcon"},
                                       {"models2/falcon_new", "models2/falcon_new"},
                                       {"models2/starcoder2", "models2/starcoder2"},
                                       {"models2/stablelm", "models2/stablelm"},
                                       {"models2/cohere", "models2/cohere"},
                                       {"models2/cohere2", "models2/cohere2"},
                                       {"models2/smollm3", "models2/smollm3"},
                                       {"models2/glm4", "models2/glm4"},
                                       {"models2/mamba", "models2/mamba"}}));
  INFO(folder);
  const auto model = open_decoder(fixtures_dir() / folder);
  check_report(verify(*model, fixtures_dir() / expected / "expected.safetensors"));
}

TEST_CASE("GGUF models meet the values of their dequantized weights") {
  if (fixtures_dir().empty()) MULCIBER_SKIP("the reference models are not here");
  const std::string type = GENERATE("F32", "F16", "Q8_0", "Q4_0", "Q4_K_M", "Q6_K");
  INFO(type);
  const auto model = open_decoder(fixtures_dir() / "gguf" / ("tiny-" + type + ".gguf"));
  const SafetensorsFile expected(fixtures_dir() / "gguf/expected.safetensors");
  const auto values = [&](int prompt, const char* name) {
    return read_values(*expected.find(type + "/prompt" + std::to_string(prompt) + "/" + name));
  };
  for (int prompt : {0, 1}) {
    const std::vector<double> ids = values(prompt, "input_ids"),
                              greedy = values(prompt, "greedy_ids");
    CHECK(alone(*model, {ids.begin(), ids.end()}, 24) ==
          std::vector<uint32_t>(greedy.begin(), greedy.end()));
    if (prompt > 0) continue;
    std::vector<double> fed = ids;
    fed.insert(fed.end(), greedy.begin(), greedy.end() - 1);
    const std::vector<std::string> wanted = {"logits"};
    const NamedArrays outputs = model->forward({{"input_ids", {{1, fed.size()}, fed}}}, wanted);
    const std::vector<double>& found = outputs.at("logits").values;
    const std::vector<double> logits = values(prompt, "logits");
    REQUIRE(found.size() == logits.size());
    double worst = 0;
    for (size_t i = 0; i < logits.size(); ++i)
      worst = std::max(worst, std::abs(found[i] - logits[i]));
    INFO("largest difference " << worst);
    CHECK(worst < 2e-4);
  }
}
