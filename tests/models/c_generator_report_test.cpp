// Generators in C: options of loading, descriptions, predicted and trimmed memory.
#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "tests/c_generation.h"
#include "tests/catch.h"
#include "tests/lora_files.h"
#include "tests/small_decoder.h"

#include "mulciber/c/completion.h"
#include "mulciber/c/scores.h"
#include "mulciber/mulciber_c.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

void check_same_report(const MulciberGeneratorReport& found, const GeneratorDescription& expected) {
  CHECK(found.context == expected.context);
  CHECK(found.family == expected.family);
  CHECK(found.sequences == expected.sequences);
  CHECK(found.vocabulary == expected.vocabulary);
  CHECK(found.width == expected.width);
  CHECK(found.layers == expected.layers);
  CHECK(found.heads == expected.heads);
  CHECK(static_cast<int>(found.key_values) == static_cast<int>(expected.key_values));
  CHECK((found.chat_template != 0) == expected.chat_template);
  CHECK(list_of(found.end_ids, found.end_count) == expected.end_ids);
  REQUIRE(found.adapter_count == expected.adapters.size());
  for (uint32_t i = 0; i < found.adapter_count; ++i)
    CHECK(found.adapters[i] == expected.adapters[i]);
  const MulciberSampling& sampling = *found.default_sampling;
  REQUIRE(sampling.size == sizeof(sampling));
  CHECK(Sampling{.temperature = sampling.temperature,
                 .top_k = sampling.top_k,
                 .top_p = sampling.top_p,
                 .min_p = sampling.min_p,
                 .typical_p = sampling.typical_p,
                 .repetition_penalty = sampling.repetition_penalty,
                 .presence_penalty = sampling.presence_penalty,
                 .frequency_penalty = sampling.frequency_penalty,
                 .penalty_window = sampling.penalty_window,
                 .seed = sampling.seed} == expected.default_sampling);
}

}  // namespace

TEST_CASE("A generator in C has the options that it is loaded with, and reports them") {
  MulciberLoadInfo load = load_with_context(48, 2);
  const MulciberHeadNumber heads[] = {{sizeof(heads[0]), 1, 3}, {sizeof(heads[0]), 2, 0}};
  load.key_values = MULCIBER_KEY_VALUES_F32;
  load.masked_heads = heads;
  load.masked_head_count = 2;
  const GeneratorOptions options = {.key_values = KeyValueStorage::kF32,
                                    .context = 48,
                                    .sequences = 2,
                                    .masked_heads = {{1, 3}, {2, 0}}};
  TwinGenerators twins(small_decoder().string(), load, options);
  MulciberGeneratorReport found = {sizeof(found)};
  REQUIRE(mulciber_describe_generator(twins.c, twins.generator, &found) == MULCIBER_OK);
  check_same_report(found, twins.same.describe());
  CHECK(found.key_values == MULCIBER_KEY_VALUES_F32);
  CHECK(found.sequences == 2);

  // Scores have the masked heads.
  const std::vector<ScoreInput> inputs = {{.text = "the red hammer"}};
  const MulciberScoreInput input = {sizeof(input), 0, nullptr, "the red hammer", nullptr};
  CResult result;
  const MulciberTextScore* scores = nullptr;
  REQUIRE(mulciber_score(twins.c, twins.generator, 1, &input, nullptr, &result.handle, &scores,
                         nullptr) == MULCIBER_OK);
  const double masked = scores[0].sum;
  CHECK(masked == twins.same.score(inputs).texts[0].sum);
  TextGenerator whole(shared_handle(), small_decoder().string(),
                      {.key_values = KeyValueStorage::kF32, .context = 48});
  CHECK(masked != whole.score(inputs).texts[0].sum);

  // A loader in parts has the same options.
  MulciberLoader* loader = nullptr;
  REQUIRE(mulciber_begin_load(twins.c, &twins.device, twins.model, &load, &loader) == MULCIBER_OK);
  MulciberLoadProgress progress = {sizeof(progress)};
  while (!progress.complete)
    REQUIRE(mulciber_step_load(twins.c, loader, 1 << 20, &progress) == MULCIBER_OK);
  MulciberGenerator* loaded = nullptr;
  REQUIRE(mulciber_finish_generator(twins.c, loader, &loaded) == MULCIBER_OK);
  mulciber_destroy_loader(loader);
  REQUIRE(mulciber_describe_generator(twins.c, loaded, &found) == MULCIBER_OK);
  check_same_report(found, twins.same.describe());
  mulciber_destroy_generator(loaded);

  MulciberGenerator* none = nullptr;
  load.masked_heads = nullptr;
  CHECK_THAT(
      twins.refused(mulciber_load_generator(twins.c, &twins.device, twins.model, &load, &none)),
      ContainsSubstring("MulciberHeadNumber: is NULL"));
  load.masked_head_count = 0;
  load.key_values = static_cast<MulciberKeyValueStorage>(3);
  CHECK_THAT(
      twins.refused(mulciber_load_generator(twins.c, &twins.device, twins.model, &load, &none)),
      ContainsSubstring("key_values: is 3; give one of MulciberKeyValueStorage"));
  CHECK(none == nullptr);
  // An older program's structure ends before all of them.
  load.size = offsetof(MulciberLoadInfo, fast_activations);
  REQUIRE(mulciber_load_generator(twins.c, &twins.device, twins.model, &load, &none) ==
          MULCIBER_OK);
  REQUIRE(mulciber_describe_generator(twins.c, none, &found) == MULCIBER_OK);
  CHECK(found.key_values == MULCIBER_KEY_VALUES_F16);
  CHECK(found.sequences == 1);
  mulciber_destroy_generator(none);
}

TEST_CASE("A generator in C reports its adapters and its template") {
  const std::string file = (lora_dir() / "qwen2_all").string();
  MulciberLoadInfo load = load_with_context(48);
  const MulciberAdapter adapter = {sizeof(adapter), 0.5f, file.c_str(), "all"};
  load.adapters = &adapter;
  load.adapter_count = 1;
  GeneratorOptions options = {.context = 48};
  options.load.adapters = {{.path = file, .name = "all", .scale = 0.5f}};
  TwinGenerators adapted(tiny_model("qwen2").string(), load, options);
  MulciberGeneratorReport found = {sizeof(found)};
  REQUIRE(mulciber_describe_generator(adapted.c, adapted.generator, &found) == MULCIBER_OK);
  check_same_report(found, adapted.same.describe());
  REQUIRE(found.adapter_count == 1);
  CHECK(std::string(found.adapters[0]) == "all");
  TwinGenerators seeing((data_dir() / "vision_language/llava").string(), load_with_context(64),
                        {.context = 64});
  REQUIRE(mulciber_describe_generator(seeing.c, seeing.generator, &found) == MULCIBER_OK);
  check_same_report(found, seeing.same.describe());
  CHECK(found.chat_template);
  CHECK_THAT(seeing.refused(mulciber_describe_generator(seeing.c, seeing.generator, nullptr)),
             ContainsSubstring("MulciberGeneratorReport: is NULL"));
  CHECK_THAT(seeing.refused(mulciber_describe_generator(seeing.c, nullptr, &found)),
             ContainsSubstring("generator: is NULL"));
  CHECK(found.family == nullptr);
}

TEST_CASE("Memory of a generator in C is predicted, counted and given back") {
  MulciberLoadInfo load = load_with_context(64);
  TwinGenerators twins(small_decoder().string(), load, {.context = 64});
  MulciberMemoryPrediction found = {sizeof(found)};
  REQUIRE(mulciber_predict_generator(twins.c, &twins.device, twins.model, &load, &found) ==
          MULCIBER_OK);
  const MemoryPrediction expected =
      TextGenerator::predict(shared_device(), small_decoder().string(), {.context = 64});
  CHECK(found.weight_bytes == expected.weight_bytes);
  CHECK(found.context_bytes == expected.context_bytes);
  CHECK(found.key_value_bytes == expected.key_value_bytes);
  CHECK_THAT(
      twins.refused(mulciber_predict_generator(twins.c, nullptr, twins.model, &load, &found)),
      ContainsSubstring("device: is NULL"));

  CResult result, scored;
  const MulciberCompletion* completion = nullptr;
  const MulciberGenerateInfo info = short_info(6);
  const MulciberScoreInput input = {sizeof(input), 0, nullptr, "the red hammer", nullptr};
  const MulciberTextScore* scores = nullptr;
  REQUIRE(mulciber_generate(twins.c, twins.generator, "The red hammer", &info, &result.handle,
                            &completion) == MULCIBER_OK);
  MulciberGeneratorStatistics statistics = {sizeof(statistics)};
  REQUIRE(mulciber_generator_statistics(twins.c, twins.generator, &statistics) == MULCIBER_OK);
  CHECK(statistics.new_tokens == 6);
  CHECK(statistics.prompt_tokens == completion->prompt_count);
  CHECK(statistics.reused_tokens == 0);
  CHECK(statistics.decode_steps >= 5);
  CHECK(statistics.weight_bytes == twins.same.statistics().weight_bytes);
  CHECK(statistics.predicted_device_bytes == twins.same.statistics().predicted_device_bytes);
  CHECK(statistics.load_seconds > 0);
  CHECK(statistics.first_token_seconds > 0);
  CHECK(statistics.step_bytes > 0);
  REQUIRE(mulciber_score(twins.c, twins.generator, 1, &input, nullptr, &scored.handle, &scores,
                         nullptr) == MULCIBER_OK);
  Allocator& memory = shared_device().memory();
  const uint64_t used = memory.used(), reserved = memory.reserved();
  uint64_t freed = 7;
  REQUIRE(mulciber_trim_generator(twins.c, twins.generator, &freed) == MULCIBER_OK);
  CHECK(memory.used() < used);
  CHECK(memory.reserved() == reserved - freed);
  REQUIRE(mulciber_trim_generator(twins.c, twins.generator, nullptr) == MULCIBER_OK);
  CHECK_THAT(twins.refused(mulciber_trim_generator(twins.c, nullptr, &freed)),
             ContainsSubstring("generator: is NULL"));
  CHECK(freed == 0);
  CHECK_THAT(twins.refused(mulciber_generator_statistics(twins.c, twins.generator, nullptr)),
             ContainsSubstring("MulciberGeneratorStatistics: is NULL"));
}
