// Completions in C that are computed at once: they are those of C++, with every option, and what
// has no meaning is refused by name.
#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/application_destination.h"
#include "tests/c_generation.h"
#include "tests/catch.h"
#include "tests/lora_files.h"
#include "tests/small_decoder.h"

#include "mulciber/c/completion.h"
#include "mulciber/c/prompt.h"
#include "mulciber/mulciber_c.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr const char* kCPrompt = "The red hammer, the red hammer, the red";

TwinGenerators small_twins(uint32_t context = 64, uint32_t sequences = 1) {
  return {small_decoder().string(),
          load_with_context(context, sequences),
          {.context = context, .sequences = sequences}};
}

/// Completes a prompt in both languages. Returns that of C++.
Generation check_completed_alike(TwinGenerators& twins, const char* prompt,
                                 const MulciberGenerateInfo& info, const GenerateOptions& options) {
  CResult result;
  const MulciberCompletion* found = nullptr;
  const MulciberStatus status =
      mulciber_generate(twins.c, twins.generator, prompt, &info, &result.handle, &found);
  INFO(twins.context.message());
  REQUIRE(status == MULCIBER_OK);
  Generation expected = twins.same.generate(prompt ? prompt : "", options);
  check_same_completion(found, expected, twins.same);
  return expected;
}

}  // namespace

TEST_CASE("A completion in C is that of C++ with each option") {
  TwinGenerators twins = small_twins();
  const GenerateOptions plain = {.max_new_tokens = 8, .ignore_end = true};
  MulciberGenerateInfo info = short_info(8);
  GenerateOptions options = plain;
  const Generation usual = check_completed_alike(twins, kCPrompt, info, options);
  CHECK(check_completed_alike(twins, kCPrompt, info, options).reused_tokens > 0);

  // Sampling, with log probabilities.
  info.sample = 1;
  info.temperature = 1.2f;
  info.top_k = 60;
  info.top_p = 0.98f;
  info.min_p = 0.001f;
  info.typical_p = 0.97f;
  info.repetition_penalty = 1.2f;
  info.presence_penalty = 0.1f;
  info.frequency_penalty = 0.2f;
  info.penalty_window = 16;
  info.seed = 9;
  info.stream = 3;
  info.likeliest = 2;
  options.sampling = Sampling{.temperature = 1.2f,
                              .top_k = 60,
                              .top_p = 0.98f,
                              .min_p = 0.001f,
                              .typical_p = 0.97f,
                              .repetition_penalty = 1.2f,
                              .presence_penalty = 0.1f,
                              .frequency_penalty = 0.2f,
                              .penalty_window = 16,
                              .seed = 9};
  options.stream = 3;
  options.log_probabilities = 2;
  CHECK(check_completed_alike(twins, kCPrompt, info, options).ids != usual.ids);
  // 0 stands for the defaults of penalties and filters.
  info = short_info(8);
  info.sample = 1;
  info.temperature = 1.2f;
  info.log_probabilities = 1;
  options = plain;
  options.sampling = Sampling{.temperature = 1.2f};
  options.log_probabilities = 0;
  check_completed_alike(twins, kCPrompt, info, options);

  // Ids, biases and stop texts.
  info = short_info(8);
  const uint32_t biased[] = {77, usual.ids[0]};
  const float biases[] = {3, -std::numeric_limits<float>::infinity()};
  info.bias_ids = biased;
  info.biases = biases;
  info.bias_count = 2;
  info.prompt_ids = usual.prompt_ids.data();
  info.prompt_id_count = static_cast<uint32_t>(usual.prompt_ids.size());
  options = plain;
  options.logit_bias = {{77, 3.f}, {usual.ids[0], -std::numeric_limits<float>::infinity()}};
  options.prompt_ids = usual.prompt_ids;
  const Generation other = check_completed_alike(twins, nullptr, info, options);
  CHECK(other.prompt_ids == usual.prompt_ids);
  CHECK(std::ranges::count(other.ids, usual.ids[0]) == 0);
  REQUIRE(usual.text.size() > 1);
  const std::string stop = usual.text.substr(usual.text.size() / 2, 2);
  const char* const stops[] = {"never said", stop.c_str()};
  info = short_info(8);
  info.stops = stops;
  info.stop_count = 2;
  options = plain;
  options.stop = {"never said", stop};
  CHECK(check_completed_alike(twins, kCPrompt, info, options).end == GenerateEnd::kStopText);

  // Special tokens of prompts.
  info = short_info(1);
  options = plain;
  options.max_new_tokens = 1;
  const size_t special = check_completed_alike(twins, "The<eos>", info, options).prompt_ids.size();
  info.no_special = 1;
  options.add_special = false;
  CHECK(check_completed_alike(twins, "The<eos>", info, options).prompt_ids.size() + 1 == special);
  info.literal_special = 1;
  options.parse_special = false;
  CHECK(check_completed_alike(twins, "The<eos>", info, options).prompt_ids.size() > special);
}

TEST_CASE("Attention maps and context shifts of completions in C are those of C++") {
  TwinGenerators twins = small_twins();
  const GenerateOptions plain = {.max_new_tokens = 8, .ignore_end = true};
  const Generation usual = check_completed_alike(twins, kCPrompt, short_info(8), plain);
  MulciberGenerateInfo info = short_info(3);
  info.attention = 1;
  GenerateOptions options = plain;
  options.max_new_tokens = 3;
  options.attention = true;
  CHECK(check_completed_alike(twins, kCPrompt, info, options).attention->layers == 3);
  info = short_info(60);
  info.shift = 1;
  info.keep = 4;
  options = plain;
  options.max_new_tokens = 60;
  options.shift = true;
  options.keep = 4;
  CHECK(check_completed_alike(twins, kCPrompt, info, options).left_out > 0);
  info = short_info(8);
  info.steps_per_submission = 3;
  CHECK(check_completed_alike(twins, kCPrompt, info, plain).ids == usual.ids);
}

TEST_CASE("Draft tokens in C are those of C++") {
  TwinGenerators twins = small_twins();
  MulciberGenerateInfo info = short_info(16);
  GenerateOptions options = {.max_new_tokens = 16, .ignore_end = true};
  info.prompt_lookup = options.prompt_lookup = 2;
  info.draft_tokens = options.draft_tokens = 3;
  CHECK(check_completed_alike(twins, kCPrompt, info, options).draft_tokens > 0);
  // A second conversation with the same model drafts what the model chooses.
  MulciberGenerator* draft = nullptr;
  REQUIRE(mulciber_new_conversation(twins.c, twins.generator, 0, &draft) == MULCIBER_OK);
  TextGenerator same_draft = twins.same.conversation();
  info.prompt_lookup = options.prompt_lookup = 0;
  info.draft = draft;
  options.draft = &same_draft;
  CHECK(check_completed_alike(twins, kCPrompt, info, options).accepted_tokens > 0);
  info.draft = twins.generator;
  CResult result;
  const MulciberCompletion* found = nullptr;
  CHECK_THAT(twins.failed(mulciber_generate(twins.c, twins.generator, kCPrompt, &info,
                                            &result.handle, &found),
                          MULCIBER_ERROR_MODEL),
             ContainsSubstring("is the model itself"));
  mulciber_destroy_generator(draft);
}

TEST_CASE("Several completions in C are those of C++") {
  TwinGenerators twins = small_twins(64, 2);
  const std::vector<std::string> texts = {"The red hammer", "A", "Blue nails are in the old box"};
  const char* const prompts[] = {texts[0].c_str(), texts[1].c_str(), texts[2].c_str()};
  MulciberGenerateInfo info = short_info(6);
  info.sample = 1;
  info.temperature = 1.3f;
  info.stream = 5;
  info.log_probabilities = 1;
  const GenerateOptions options = {.sampling = Sampling{.temperature = 1.3f},
                                   .stream = 5,
                                   .max_new_tokens = 6,
                                   .ignore_end = true,
                                   .log_probabilities = 0};
  CResult result, by_ids;
  const MulciberCompletion* found = nullptr;
  REQUIRE(mulciber_generate_all(twins.c, twins.generator, 3, prompts, &info, &result.handle,
                                &found) == MULCIBER_OK);
  const std::vector<Generation> expected = twins.same.generate_all(texts, options);
  std::vector<uint32_t> ids, lengths;
  std::vector<std::vector<uint32_t>> lists;
  for (size_t i = 0; i < 3; ++i) {
    INFO("text " << i);
    check_same_completion(&found[i], expected[i], twins.same);
    lists.push_back(expected[i].prompt_ids);
    ids.insert(ids.end(), lists[i].begin(), lists[i].end());
    lengths.push_back(static_cast<uint32_t>(lists[i].size()));
  }
  REQUIRE(mulciber_generate_all_ids(twins.c, twins.generator, 3, lengths.data(), ids.data(), &info,
                                    &by_ids.handle, &found) == MULCIBER_OK);
  const std::vector<Generation> same = twins.same.generate_all(lists, options);
  for (size_t i = 0; i < 3; ++i) {
    CHECK(same[i].ids == expected[i].ids);
    check_same_completion(&found[i], same[i], twins.same);
  }
  CResult none;
  REQUIRE(mulciber_generate_all(twins.c, twins.generator, 0, nullptr, nullptr, &none.handle,
                                &found) == MULCIBER_OK);
  CHECK(none.handle != nullptr);
}

TEST_CASE("A completion in C tells its tokens, and is cancelled by any of its calls") {
  TwinGenerators twins = small_twins();
  struct Calls {
    std::vector<uint32_t> ids, likeliest;
    std::vector<float> log_probabilities;
    std::string pieces, text;
    uint32_t done = 0, total = 0;
    size_t last = SIZE_MAX;  // token at which the completion is cancelled
    MulciberCancel* cancel = nullptr;
  } calls;
  REQUIRE(mulciber_create_cancel(twins.c, &calls.cancel) == MULCIBER_OK);
  MulciberGenerateInfo info = short_info(12);
  info.likeliest = 1;
  info.cancel = calls.cancel;
  info.user = &calls;
  info.on_prompt = [](void* user, uint32_t done, uint32_t total) {
    auto& to = *static_cast<Calls*>(user);
    to.done = done;
    to.total = total;
  };
  info.on_token = [](void* user, const MulciberToken* token) {
    auto& to = *static_cast<Calls*>(user);
    CHECK(token->size == sizeof(*token));
    CHECK(to.pieces == to.text);  // before on_text
    to.ids.push_back(token->id);
    to.pieces.append(token->piece, token->piece_bytes);
    to.log_probabilities.push_back(token->log_probability);
    REQUIRE(token->likeliest_count == 1);
    to.likeliest.push_back(token->likeliest_ids[0]);
    CHECK(token->likeliest_log_probabilities[0] == token->log_probability);  // greedy
    if (to.ids.size() == to.last) mulciber_request_cancel(to.cancel);
  };
  info.on_text = [](void* user, const char* text, size_t bytes) {
    static_cast<Calls*>(user)->text.append(text, bytes);
  };
  const auto completed = [&](CResult& result) {
    const MulciberCompletion* found = nullptr;
    calls.ids.clear();
    calls.log_probabilities.clear();
    calls.pieces.clear();
    calls.text.clear();
    REQUIRE(mulciber_generate(twins.c, twins.generator, kCPrompt, &info, &result.handle, &found) ==
            MULCIBER_OK);
    CHECK(list_of(found->ids, found->id_count) == calls.ids);
    CHECK(list_of(found->log_probabilities, found->id_count) == calls.log_probabilities);
    CHECK(found->text == calls.text);
    return found;
  };
  CResult whole, early, again;
  const MulciberCompletion* all = completed(whole);
  CHECK(all->end == MULCIBER_COMPLETION_TOKEN_LIMIT);
  CHECK(calls.ids == calls.likeliest);
  CHECK(calls.done == all->prompt_count);
  CHECK(calls.total == all->prompt_count);
  calls.last = 4;
  const MulciberCompletion* cancelled = completed(early);
  CHECK(cancelled->end == MULCIBER_COMPLETION_CANCELLED);
  CHECK(cancelled->id_count >= 4);
  CHECK(cancelled->id_count < 12);
  CHECK(std::equal(cancelled->ids, cancelled->ids + cancelled->id_count, all->ids));
  mulciber_reset_cancel(calls.cancel);
  calls.last = SIZE_MAX;
  CHECK(completed(again)->id_count == 12);
  // A result outlives its generator.
  mulciber_destroy_generator(std::exchange(twins.generator, nullptr));
  CHECK(std::string(all->text).size() > 4);
  mulciber_destroy_cancel(calls.cancel);
}

TEST_CASE("Adapters of a completion in C are those of C++") {
  const std::string path = tiny_model("qwen2").string(), file = (lora_dir() / "qwen2_all").string();
  MulciberLoadInfo load = load_with_context(48);
  const MulciberAdapter adapter = {sizeof(adapter), 0.5f, file.c_str(), "all"};
  load.adapters = &adapter;
  load.adapter_count = 1;
  GeneratorOptions loading = {.context = 48};
  loading.load.adapters = {{.path = file, .name = "all", .scale = 0.5f}};
  TwinGenerators twins(path, load, loading);
  MulciberGenerateInfo info = short_info(6);
  info.log_probabilities = 1;
  GenerateOptions options = {.max_new_tokens = 6, .ignore_end = true, .log_probabilities = 0};
  const char* const prompt = "the and in the thing";
  const auto probability = [&] {
    return check_completed_alike(twins, prompt, info, options).log_probabilities[0].chosen;
  };
  const float half = probability();
  info.no_adapters = 1;
  options.adapters.emplace();
  CHECK(probability() != half);
  info.no_adapters = 0;
  const MulciberAdapter wanted = {sizeof(wanted), 2, nullptr, "all"};
  info.adapters = &wanted;
  info.adapter_count = 1;
  options.adapters = {{"all", 2}};
  CHECK(probability() != half);
  // Without a list, those of mulciber_use_adapters() apply.
  REQUIRE(mulciber_use_adapters(twins.c, twins.generator, 1, &wanted) == MULCIBER_OK);
  info.adapters = nullptr;
  info.adapter_count = 0;
  probability();
  info.no_adapters = 1;
  info.adapter_count = 1;
  CResult result;
  const MulciberCompletion* found = nullptr;
  CHECK_THAT(twins.refused(mulciber_generate(twins.c, twins.generator, prompt, &info,
                                             &result.handle, &found)),
             ContainsSubstring("beside no_adapters"));
}

TEST_CASE("A task in C has ids, biases and calls of tokens as in C++") {
  TwinGenerators twins = small_twins();
  const std::vector<uint32_t> prompt = twins.same.tokens(kCPrompt);
  std::vector<uint32_t> told;
  const uint32_t biased[] = {77};
  const float biases[] = {4};
  MulciberGenerateInfo info = short_info(8);
  info.prompt_ids = prompt.data();
  info.prompt_id_count = static_cast<uint32_t>(prompt.size());
  info.bias_ids = biased;
  info.biases = biases;
  info.bias_count = 1;
  info.user = &told;
  info.on_token = [](void* user, const MulciberToken* token) {
    static_cast<std::vector<uint32_t>*>(user)->push_back(token->id);
  };
  MulciberTask* task = nullptr;
  REQUIRE(mulciber_begin_generation(twins.c, twins.generator, nullptr, &info, &task) ==
          MULCIBER_OK);
  finish(*task->task);
  MulciberText found = {sizeof(found)};
  REQUIRE(mulciber_so_far(twins.c, task, &found) == MULCIBER_OK);
  const Generation expected = twins.same.generate(
      "",
      {.max_new_tokens = 8, .prompt_ids = prompt, .ignore_end = true, .logit_bias = {{77, 4.f}}});
  CHECK(list_of(found.ids, found.id_count) == expected.ids);
  CHECK(list_of(found.source_ids, found.source_count) == prompt);
  CHECK(found.text == expected.text);
  CHECK(told == expected.ids);
  mulciber_destroy_task(task);
}
