// GGUF files of families besides Llama, one of them split, compared with folders of the same
// weights. The files' names and layouts are those of the gguf package
// (tools/fixtures/gguf_families.py).
#include <cmath>
#include <set>

#include "models/generation/decoder_model.h"
#include "mulciber/text_generator.h"
#include "tests/catch.h"
#include "tests/device.h"
#include "tests/model_error.h"
#include "tests/support.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

fs::path families() { return data_dir() / "gguf_families"; }

/// The model's logits of these ids, then the 16 ids that a greedy search adds.
std::pair<std::vector<double>, std::vector<double>> answer(const fs::path& path) {
  const std::vector<double> ids = {257, 32, 104, 259, 32, 7, 200, 262, 110, 261, 1};
  const Checkpoint checkpoint(path);
  DecoderModel model(shared_device(), checkpoint, read_decoder_config(checkpoint), {});
  const std::vector<std::string> wanted = {"logits"};
  GenerationConfig config;
  config.max_new_tokens = 16;
  return {model.forward({{"input_ids", {{1, ids.size()}, ids}}}, wanted).at("logits").values,
          model.search({{"input_ids", {{1, ids.size()}, ids}}}, config, 1).at("output_ids").values};
}

/// A copy of the file in which `from`, a metadata key or a part of one, is renamed to a text of the
/// same length.
void rename_in(const fs::path& source, const fs::path& target, const std::string& from,
               const std::string& to) {
  std::string bytes = read_file(source);
  const size_t at = bytes.find(from);
  REQUIRE(at != bytes.npos);
  REQUIRE(from.size() == to.size());
  write_file(target, bytes.replace(at, from.size(), to));
}

}  // namespace

TEST_CASE("GGUF files of GPT-2, Qwen 2 and Qwen 3 are the models of their folders") {
  const auto [folder, file] =
      GENERATE(table<std::string, std::string>({{"gpt2", "gpt2.gguf"},
                                                {"qwen2", "qwen2.gguf"},
                                                {"qwen3", "qwen3-00001-of-00003.gguf"},
                                                {"qwen3", "qwen3-00003-of-00003.gguf"}}));
  INFO(file);
  const auto [logits, ids] = answer(families() / folder);
  const auto [gguf_logits, gguf_ids] = answer(families() / file);
  CHECK(gguf_ids == ids);
  CHECK(std::set<double>(ids.begin(), ids.end()).size() > 5);  // the model does not repeat one id
  REQUIRE(gguf_logits.size() == logits.size());
  double worst = 0;
  for (size_t i = 0; i < logits.size(); ++i)
    worst = std::max(worst, std::abs(gguf_logits[i] - logits[i]));
  INFO("largest difference " << worst);
  CHECK(worst < 1e-5);
}

TEST_CASE("Parts of a split GGUF file that do not belong together are refused") {
  const TemporaryFolder folder;
  const auto part = [](const fs::path& where, int number) {
    return where / ("qwen3-0000" + std::to_string(number) + "-of-00003.gguf");
  };
  const auto copy = [&] {
    for (int i = 1; i <= 3; ++i)
      fs::copy_file(part(families(), i), part(folder.path(), i),
                    fs::copy_options::overwrite_existing);
  };
  const auto refusal = [&] {
    return model_error([&] { Checkpoint{part(folder.path(), 1)}; }).value_or("no error");
  };
  copy();
  CHECK(refusal() == "no error");
  fs::remove(part(folder.path(), 2));
  CHECK_THAT(refusal(), ContainsSubstring("qwen3-00002-of-00003.gguf"));
  fs::copy_file(part(folder.path(), 3), part(folder.path(), 2));
  CHECK_THAT(refusal(), ContainsSubstring("is not part 2 of its file"));
  copy();
  fs::copy_file(part(folder.path(), 1), folder.path() / "renamed.gguf");
  CHECK_THAT(model_error([&] { Checkpoint(folder.path() / "renamed.gguf"); }).value_or("no error"),
             ContainsSubstring("does not end in -NNNNN-of-NNNNN.gguf"));
}

TEST_CASE("A GGUF file's sampling keys are the default") {
  const std::shared_ptr<Device> device = shared_handle();
  CHECK(TextGenerator(device, (families() / "gpt2.gguf").string(), {})
            .default_sampling()
            .temperature == 0);
  const TextGenerator generator(device, (families() / "qwen2.gguf").string(), {});
  const Sampling sampling = generator.default_sampling();
  CHECK(sampling.temperature == 0.75f);
  CHECK(sampling.top_k == 20);
  CHECK(sampling.top_p == 0.875f);
  CHECK(sampling.min_p == 0.0625f);
  CHECK(sampling.repetition_penalty == 1.125f);
  CHECK(sampling.penalty_window == 48);

  // Without penalty_last_n the window is the whole context.
  const TemporaryFolder folder;
  rename_in(families() / "qwen2.gguf", folder.path() / "whole.gguf", "penalty_last_n",
            "penalty_last_m");
  CHECK(TextGenerator(device, (folder.path() / "whole.gguf").string(), {})
            .default_sampling()
            .penalty_window == 64);
}
