// Arguments of completions in C: what is wrong, or has no meaning for a function, is refused by
// name.
#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "tests/c_generation.h"
#include "tests/catch.h"
#include "tests/small_decoder.h"

#include "mulciber/c/completion.h"
#include "mulciber/mulciber_c.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("Wrong arguments of completions in C are refused by name") {
  TwinGenerators twins(small_decoder().string(), load_with_context(64), {.context = 64});
  MulciberContext* c = twins.c;
  MulciberGenerator* g = twins.generator;
  CResult result;
  const MulciberCompletion* found = nullptr;
  const auto generated = [&](const MulciberGenerateInfo& info, const char* prompt = "The") {
    found = reinterpret_cast<const MulciberCompletion*>(&found);
    const MulciberStatus status = mulciber_generate(c, g, prompt, &info, &result.handle, &found);
    CHECK(result.handle == nullptr);
    CHECK(found == nullptr);
    return twins.refused(status);
  };
  CHECK_THAT(twins.refused(mulciber_generate(c, g, "The", nullptr, nullptr, &found)),
             ContainsSubstring("result: is NULL"));
  CHECK_THAT(twins.refused(mulciber_generate(c, g, "The", nullptr, &result.handle, nullptr)),
             ContainsSubstring("completion: is NULL"));
  CHECK_THAT(twins.refused(mulciber_generate(c, nullptr, "The", nullptr, &result.handle, &found)),
             ContainsSubstring("generator: is NULL"));
  const MulciberGenerateInfo plain = short_info(2);
  CHECK_THAT(generated(plain, nullptr), ContainsSubstring("prompt: is NULL"));

  // Lists whose number is not 0.
  const auto with = [&](auto set) {
    MulciberGenerateInfo info = plain;
    set(info);
    return info;
  };
  const char* const no_text[] = {nullptr};
  const MulciberPreparedImage* const no_image[] = {nullptr};
  const uint32_t ids[] = {5, 6};
  CHECK_THAT(generated(with([](auto& i) { i.prompt_id_count = 2; }), nullptr),
             ContainsSubstring("prompt_ids: is NULL"));
  CHECK_THAT(generated(with([&](auto& i) { i.prompt_id_count = 2, i.prompt_ids = ids; })),
             ContainsSubstring("prompt: is given beside prompt_ids"));
  CHECK_THAT(generated(with([](auto& i) { i.stop_count = 1; })),
             ContainsSubstring("stops: is NULL"));
  CHECK_THAT(generated(with([&](auto& i) { i.stop_count = 1, i.stops = no_text; })),
             ContainsSubstring("stops: is NULL"));
  CHECK_THAT(generated(with([](auto& i) { i.image_count = 1; })),
             ContainsSubstring("images: is NULL"));
  CHECK_THAT(generated(with([&](auto& i) { i.image_count = 1, i.images = no_image; })),
             ContainsSubstring("images: is NULL"));
  CHECK_THAT(generated(with([](auto& i) { i.bias_count = 1; })),
             ContainsSubstring("bias_ids: is NULL"));
  CHECK_THAT(generated(with([&](auto& i) { i.bias_count = 1, i.bias_ids = ids; })),
             ContainsSubstring("biases: is NULL"));
  CHECK_THAT(generated(with([](auto& i) { i.adapter_count = 1; })), ContainsSubstring("is NULL"));
  CHECK_THAT(generated(with([](auto& i) { i.part_count = 1; })),
             ContainsSubstring("MulciberGenerateInfo::parts: is given to mulciber_generate"));
  const MulciberGenerationOutputs outputs = {sizeof(outputs), nullptr, nullptr};
  CHECK_THAT(generated(with([&](auto& i) { i.outputs = &outputs; })),
             ContainsSubstring("MulciberGenerateInfo::outputs"));
  CHECK_THAT(generated(with([](auto& i) { i.likeliest = 21; })), ContainsSubstring("at most 20"));
  CHECK_THAT(generated(with([](auto& i) { i.draft_tokens = 8, i.prompt_lookup = 2; })),
             ContainsSubstring("draft_tokens"));
  CHECK_THAT(generated(with([](auto& i) { i.sample = 1, i.repetition_penalty = -1; })),
             ContainsSubstring("sampling"));
  // A failure of the model is no wrong argument.
  CHECK_THAT(twins.failed(mulciber_generate(c, g, std::string(400, 'x').c_str(), nullptr,
                                            &result.handle, &found),
                          MULCIBER_ERROR_MODEL),
             ContainsSubstring("leaves no room in a context of 64"));
}

TEST_CASE("Options that have no meaning for a function in C are refused by name") {
  TwinGenerators twins(small_decoder().string(), load_with_context(64), {.context = 64});
  MulciberContext* c = twins.c;
  MulciberGenerator* g = twins.generator;
  CResult result;
  const MulciberCompletion* found = nullptr;
  MulciberTask* task = nullptr;
  const MulciberGenerateInfo plain = short_info(2);
  const char* const no_text[] = {nullptr};
  const uint32_t ids[] = {5, 6};
  struct Field {
    const char* name;
    void (*set)(MulciberGenerateInfo& info);
    bool of_tasks, of_several;  // refused there
  };
  static MulciberGenerator* any_draft = g;
  const Field fields[] = {
      {"images", [](auto& i) { i.image_count = 1; }, true, true},
      {"log_probabilities", [](auto& i) { i.log_probabilities = 1; }, true, false},
      {"likeliest", [](auto& i) { i.likeliest = 1; }, true, false},
      {"attention", [](auto& i) { i.attention = 1; }, true, false},
      {"shift", [](auto& i) { i.shift = 1; }, true, true},
      {"keep", [](auto& i) { i.keep = 1; }, true, true},
      {"prompt_lookup", [](auto& i) { i.prompt_lookup = 2; }, true, true},
      {"draft", [](auto& i) { i.draft = any_draft; }, true, true},
      {"draft_tokens", [](auto& i) { i.draft_tokens = 1; }, true, true},
      {"steps_per_submission", [](auto& i) { i.steps_per_submission = 1; }, true, false},
      {"prompt_ids", [](auto& i) { i.prompt_id_count = 1; }, false, true},
      {"on_text", [](auto& i) { i.on_text = [](void*, const char*, size_t) {}; }, false, true},
      {"on_prompt", [](auto& i) { i.on_prompt = [](void*, uint32_t, uint32_t) {}; }, false, true},
      {"on_token", [](auto& i) { i.on_token = [](void*, const MulciberToken*) {}; }, false, true}};
  const char* const prompts[] = {"The"};
  for (const Field& field : fields) {
    const std::string named = std::string("MulciberGenerateInfo::") + field.name + ": is given to ";
    MulciberGenerateInfo info = plain;
    field.set(info);
    if (field.of_tasks)
      CHECK_THAT(twins.refused(mulciber_begin_generation(c, g, "The", &info, &task)),
                 ContainsSubstring(named + "a task"));
    if (field.of_several)
      CHECK_THAT(
          twins.refused(mulciber_generate_all(c, g, 1, prompts, &info, &result.handle, &found)),
          ContainsSubstring(named + "mulciber_generate_all"));
  }
  CHECK_THAT(twins.refused(mulciber_generate_all(c, g, 1, nullptr, &plain, &result.handle, &found)),
             ContainsSubstring("prompts: is NULL"));
  CHECK_THAT(twins.refused(mulciber_generate_all(c, g, 1, no_text, &plain, &result.handle, &found)),
             ContainsSubstring("prompts: is NULL"));
  CHECK_THAT(twins.refused(
                 mulciber_generate_all_ids(c, g, 1, nullptr, ids, &plain, &result.handle, &found)),
             ContainsSubstring("lengths: is NULL"));
  CHECK_THAT(twins.refused(
                 mulciber_generate_all_ids(c, g, 1, ids, nullptr, &plain, &result.handle, &found)),
             ContainsSubstring("ids: is NULL"));
  const MulciberPromptPart part = {sizeof(part), 0, "The", nullptr};
  MulciberGenerateInfo both = plain;
  both.parts = &part;
  both.part_count = 1;
  both.prompt_ids = ids;
  both.prompt_id_count = 2;
  CHECK_THAT(twins.refused(mulciber_begin_generation(c, g, nullptr, &both, &task)),
             ContainsSubstring("prompt_ids: are given beside parts"));
  CHECK(task == nullptr);
  CHECK(result.handle == nullptr);
}

TEST_CASE("Options of completions that an older program does not know are as they were") {
  TwinGenerators twins(small_decoder().string(), load_with_context(64), {.context = 64});
  MulciberGenerateInfo older = short_info(8);
  older.size = offsetof(MulciberGenerateInfo, no_special);
  older.no_special = older.attention = older.shift = 1;  // whatever stands behind its end
  older.prompt_id_count = 7;
  CResult result;
  const MulciberCompletion* found = nullptr;
  REQUIRE(mulciber_generate(twins.c, twins.generator, "The red hammer", &older, &result.handle,
                            &found) == MULCIBER_OK);
  const GenerateOptions options = {.max_new_tokens = 8, .ignore_end = true};
  check_same_completion(found, twins.same.generate("The red hammer", options), twins.same);
}
