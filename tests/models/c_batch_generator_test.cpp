// Continuous batching in C: requests, their calls and what they give are those of C++.
#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "tests/batch_requests.h"
#include "tests/c_generation.h"
#include "tests/catch.h"

#include "mulciber/c/batch_generator.h"
#include "mulciber/mulciber_c.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

/// Copies of what a completion in C had while it was valid.
struct EndedInC {
  std::vector<uint32_t> ids, prompt_ids;
  std::vector<float> log_probabilities;
  std::string text;
  MulciberCompletionEnd end = MULCIBER_COMPLETION_END_MAX;
};

/// A request in C and what its calls got.
struct ToldInC {
  std::vector<uint32_t> ids;
  std::string pieces, text, message;
  std::vector<uint32_t> prompt;  // prompt tokens done, at each call
  std::optional<EndedInC> end;
  MulciberStatus status = MULCIBER_OK;

  MulciberGenerateInfo info = short_info(8);
  MulciberBatchRequest request = {sizeof(request)};

  ToldInC() {
    info.user = request.user = this;
    info.on_prompt = [](void* user, uint32_t done, uint32_t) {
      static_cast<ToldInC*>(user)->prompt.push_back(done);
    };
    info.on_token = [](void* user, const MulciberToken* token) {
      auto& to = *static_cast<ToldInC*>(user);
      to.ids.push_back(token->id);
      to.pieces.append(token->piece, token->piece_bytes);
    };
    info.on_text = [](void* user, const char* text, size_t bytes) {
      static_cast<ToldInC*>(user)->text.append(text, bytes);
    };
    request.on_end = [](void* user, const MulciberCompletion* found) {
      auto& to = *static_cast<ToldInC*>(user);
      CHECK_FALSE(to.end);
      to.end = EndedInC{
          list_of(found->ids, found->id_count), list_of(found->prompt_ids, found->prompt_count),
          list_of(found->log_probabilities, found->log_probabilities ? found->id_count : 0),
          found->text, found->end};
    };
    request.on_error = [](void* user, MulciberStatus failed, const char* text) {
      auto& to = *static_cast<ToldInC*>(user);
      to.status = failed;
      to.message = text;
    };
  }
  ToldInC(const ToldInC&) = delete;
};

/// A batch generator in C, and one in C++ that is loaded alike.
struct TwinBatches : SharedSession {
  BatchGenerator same;
  MulciberBatchGenerator* batch = nullptr;

  explicit TwinBatches(uint32_t sequences, bool drafts = false)
      : SharedSession(small_decoder().string()), same([&] {
          BatchGeneratorOptions options;
          options.generator = {.context = 96, .sequences = sequences};
          options.prompt_tokens = 8;
          options.cache_tokens = 192;
          if (drafts) options.draft = small_model();
          return BatchGenerator(shared_handle(), small_model(), options);
        }()) {
    const MulciberLoadInfo load = load_with_context(96, sequences);
    MulciberBatchInfo info = {sizeof(info)};
    info.prompt_tokens = 8;
    info.cache_tokens = 192;
    if (drafts) info.draft = model;
    REQUIRE(mulciber_load_batch_generator(c, &device, model, &load, &info, &batch) == MULCIBER_OK);
  }
  ~TwinBatches() { mulciber_destroy_batch_generator(batch); }

  uint64_t submit(ToldInC& told, const char* prompt) {
    uint64_t number = 0;
    const MulciberStatus status =
        mulciber_submit_generation(c, batch, prompt, &told.info, &told.request, &number);
    INFO(context.message());
    REQUIRE(status == MULCIBER_OK);
    return number;
  }
  bool step() {
    MulciberBool worked = 0;
    REQUIRE(mulciber_step_generations(c, batch, &worked) == MULCIBER_OK);
    return worked != 0;
  }
};

/// Checks that a request in C was told what one in C++ was told.
void check_told_alike(const ToldInC& found, const Told& expected) {
  CHECK(found.ids == expected.ids);
  CHECK(found.text == expected.text);
  CHECK(std::vector<size_t>(found.prompt.begin(), found.prompt.end()) == expected.prompt);
  REQUIRE(found.end);
  REQUIRE(expected.end);
  CHECK(found.end->ids == expected.end->ids);
  CHECK(found.end->prompt_ids == expected.end->prompt_ids);
  CHECK(found.end->text == expected.end->text);
  CHECK(static_cast<int>(found.end->end) == static_cast<int>(expected.end->end));
  REQUIRE(found.end->log_probabilities.size() == expected.end->log_probabilities.size());
  for (size_t i = 0; i < expected.end->log_probabilities.size(); ++i)
    CHECK(found.end->log_probabilities[i] == expected.end->log_probabilities[i].chosen);
}

}  // namespace

TEST_CASE("Requests of a batch in C are those in C++") {
  TwinBatches twins(2);
  const std::string texts[] = {"The red hammer and the", "An old house", "The red hammer and the"};
  ToldInC found[3];
  Told expected[3];
  const uint32_t biased[] = {77};
  const float biases[] = {4};
  found[0].info.likeliest = 2;
  found[1].info.sample = 1;
  found[1].info.temperature = 1.3f;
  found[1].info.seed = 5;
  found[1].info.stream = 2;
  found[2].info.bias_ids = biased;
  found[2].info.biases = biases;
  found[2].info.bias_count = 1;
  found[2].request.reuse_completions = 1;
  BatchRequest requests[3];
  for (size_t i = 0; i < 3; ++i) {
    requests[i].prompt = texts[i];
    requests[i].max_new_tokens = 8;
    requests[i].ignore_end = true;
  }
  requests[0].log_probabilities = 2;
  requests[1].sampling = Sampling{.temperature = 1.3f, .seed = 5};
  requests[1].stream = 2;
  requests[2].logit_bias = {{77, 4.f}};
  requests[2].reuse_completions = true;
  for (size_t i = 0; i < 3; ++i) {
    CHECK(twins.submit(found[i], texts[i].c_str()) == i + 1);
    submit(twins.same, requests[i], expected[i]);
  }
  MulciberBatchGeneratorStatistics before = {sizeof(before)}, after = {sizeof(after)};
  REQUIRE(mulciber_batch_statistics(twins.c, twins.batch, &before) == MULCIBER_OK);
  CHECK(before.waiting == 3);
  CHECK(before.running == 0);
  while (twins.step()) {
  }
  while (twins.same.step()) {
  }
  for (size_t i = 0; i < 3; ++i) {
    INFO("request " << i);
    check_told_alike(found[i], expected[i]);
    CHECK(found[i].text.starts_with(found[i].pieces));  // the last character may be incomplete
  }
  REQUIRE(mulciber_batch_statistics(twins.c, twins.batch, &after) == MULCIBER_OK);
  const BatchGeneratorStatistics& same = twins.same.statistics();
  CHECK(after.requests == 3);
  CHECK(after.ended == same.ended);
  CHECK(after.new_tokens == same.new_tokens);
  CHECK(after.steps == same.steps);
  CHECK(after.row_steps == same.row_steps);
  CHECK(after.reused_tokens == same.reused_tokens);
  CHECK(after.pages == same.pages);
  CHECK(after.page_tokens == same.page_tokens);
  CHECK(after.waiting + after.running == 0);
  CHECK(after.weight_bytes == same.weight_bytes);
}

TEST_CASE("Requests in C are cancelled, fail and begin others") {
  TwinBatches twins(2);
  ToldInC cancelled, failing, other;
  const uint64_t number = twins.submit(cancelled, "The red hammer");
  REQUIRE(twins.step());
  REQUIRE(mulciber_cancel_generation(twins.c, twins.batch, number) == MULCIBER_OK);
  REQUIRE(twins.step());
  REQUIRE(cancelled.end);
  CHECK(cancelled.end->end == MULCIBER_COMPLETION_CANCELLED);
  CHECK(mulciber_cancel_generation(twins.c, twins.batch, number) == MULCIBER_OK);

  // A grammar that allows only what biases forbid.
  MulciberGrammar* grammar = nullptr;
  REQUIRE(mulciber_make_grammar(twins.c, MULCIBER_GRAMMAR_REGEX, "a+", &grammar) == MULCIBER_OK);
  std::vector<uint32_t> forbidden;
  for (uint32_t id = 0; id < twins.same.vocabulary(); ++id)
    if (twins.same.token_text(id).starts_with("a") || twins.same.token_text(id) == "<0x61>")
      forbidden.push_back(id);
  const std::vector<float> never(forbidden.size(), -kInfinity);
  failing.info.grammar = grammar;
  failing.info.bias_ids = forbidden.data();
  failing.info.biases = never.data();
  failing.info.bias_count = static_cast<uint32_t>(forbidden.size());
  twins.submit(failing, "The red hammer");
  mulciber_destroy_grammar(grammar);

  // A call of a request submits another one.
  struct Chain {
    TwinBatches* twins;
    ToldInC* next;
  } chain = {&twins, &other};
  MulciberBatchRequest first = {sizeof(first)};
  first.user = &chain;
  first.on_end = [](void* user, const MulciberCompletion*) {
    const auto& to = *static_cast<Chain*>(user);
    to.twins->submit(*to.next, "An old house");
  };
  const MulciberGenerateInfo info = short_info(2);
  REQUIRE(mulciber_submit_generation(twins.c, twins.batch, "The", &info, &first, nullptr) ==
          MULCIBER_OK);
  while (twins.step()) {
  }
  CHECK_FALSE(failing.end);
  CHECK(failing.status == MULCIBER_ERROR_MODEL);
  CHECK_THAT(failing.message, ContainsSubstring("have no probability"));
  REQUIRE(other.end);
  CHECK(other.end->ids.size() == 8);
  // Requests without calls run too, and those that are left end with the generator.
  REQUIRE(mulciber_submit_generation(twins.c, twins.batch, "The", nullptr, nullptr, nullptr) ==
          MULCIBER_OK);
  REQUIRE(twins.step());
}

TEST_CASE("A draft model of a batch in C drafts as in C++") {
  TwinBatches twins(2, true);
  for (const bool drafts : {true, false}) {
    ToldInC found;
    Told expected;
    found.request.no_draft = !drafts;
    BatchRequest request;
    request.prompt = "The red hammer and the";
    request.max_new_tokens = 8;
    request.ignore_end = true;
    request.draft = drafts;
    MulciberBatchGeneratorStatistics before = {sizeof(before)}, after = {sizeof(after)};
    REQUIRE(mulciber_batch_statistics(twins.c, twins.batch, &before) == MULCIBER_OK);
    twins.submit(found, request.prompt.c_str());
    submit(twins.same, request, expected);
    while (twins.step()) {
    }
    while (twins.same.step()) {
    }
    check_told_alike(found, expected);
    REQUIRE(mulciber_batch_statistics(twins.c, twins.batch, &after) == MULCIBER_OK);
    CHECK((after.draft_tokens > before.draft_tokens) == drafts);
    CHECK(after.accepted_tokens == twins.same.statistics().accepted_tokens);
  }
}

TEST_CASE("A batch in C has tokens, scores, maps and memory as in C++") {
  TwinBatches twins(2);
  MulciberContext* c = twins.c;
  const std::vector<uint32_t> ids = twins.same.tokens("The red hammer");
  CResult tokens, text, piece, chat, scored, mapped, stopped;
  uint32_t count = 0;
  const uint32_t* found_ids = nullptr;
  const char* found = nullptr;
  REQUIRE(mulciber_batch_tokenize(c, twins.batch, "The red hammer", nullptr, &tokens.handle, &count,
                                  &found_ids) == MULCIBER_OK);
  CHECK(list_of(found_ids, count) == ids);
  REQUIRE(mulciber_batch_detokenize(c, twins.batch, count, found_ids, &text.handle, &found) ==
          MULCIBER_OK);
  CHECK(std::string(found) == "The red hammer");
  REQUIRE(mulciber_batch_token_text(c, twins.batch, ids[1], &piece.handle, &found) == MULCIBER_OK);
  CHECK(found == twins.same.token_text(ids[1]));
  const MulciberChatMessage message = {sizeof(message), 0, "user", "Hello"};
  REQUIRE(mulciber_batch_chat_prompt(c, twins.batch, 1, &message, &chat.handle, &found) ==
          MULCIBER_OK);
  CHECK(found == nullptr);

  const std::vector<ScoreInput> same = {{.text = "the red hammer"}};
  const MulciberScoreInput input = {sizeof(input), 0, nullptr, "the red hammer", nullptr};
  const MulciberTextScore* scores = nullptr;
  REQUIRE(mulciber_batch_score(c, twins.batch, 1, &input, nullptr, &scored.handle, &scores,
                               nullptr) == MULCIBER_OK);
  CHECK(scores[0].sum == twins.same.score(same).texts[0].sum);

  MulciberBatchAttentionInfo info = {sizeof(info)};
  uint32_t calls = 0;
  info.one_layer = 1;
  info.layer = 1;
  info.mean = 1;
  info.user = &calls;
  info.between = [](void* user) { ++*static_cast<uint32_t*>(user); };
  const MulciberTokenAttention* maps = nullptr;
  const auto length = static_cast<uint32_t>(ids.size());
  REQUIRE(mulciber_batch_attention(c, twins.batch, length, ids.data(), &info, &mapped.handle,
                                   &maps) == MULCIBER_OK);
  CHECK(calls > 0);
  check_same_attention(*maps, twins.same.attention(ids, {.layer = 1, .mean = true}).value());
  info.layer = 3;
  CHECK_THAT(twins.refused(mulciber_batch_attention(c, twins.batch, length, ids.data(), &info,
                                                    &stopped.handle, &maps)),
             ContainsSubstring("is 3 of 3"));
  MulciberCancel* cancel = nullptr;
  REQUIRE(mulciber_create_cancel(c, &cancel) == MULCIBER_OK);
  mulciber_request_cancel(cancel);
  info.layer = 0;
  info.cancel = cancel;
  REQUIRE(mulciber_batch_attention(c, twins.batch, length, ids.data(), &info, &stopped.handle,
                                   &maps) == MULCIBER_OK);
  CHECK(maps == nullptr);
  mulciber_destroy_cancel(cancel);

  uint64_t freed = 1;
  const uint64_t used = shared_device().memory().used();
  REQUIRE(mulciber_batch_trim(c, twins.batch, &freed) == MULCIBER_OK);
  CHECK(shared_device().memory().used() < used);
  MulciberGeneratorReport report = {sizeof(report)};
  REQUIRE(mulciber_batch_describe(c, twins.batch, &report) == MULCIBER_OK);
  CHECK(report.sequences == 2);
  CHECK(report.context == 96);
  CHECK(std::string(report.family) == twins.same.family());
}

TEST_CASE("Wrong requests of a batch in C are refused by name") {
  TwinBatches twins(1);
  MulciberContext* c = twins.c;
  uint64_t number = 7;
  const auto refused = [&](const MulciberGenerateInfo& info, const char* prompt = "The") {
    number = 7;
    const std::string words =
        twins.refused(mulciber_submit_generation(c, twins.batch, prompt, &info, nullptr, &number));
    CHECK(number == 0);
    return words;
  };
  const MulciberGenerateInfo plain = short_info(2);
  CHECK_THAT(refused(plain, nullptr), ContainsSubstring("prompt: is NULL"));
  const std::pair<const char*, void (*)(MulciberGenerateInfo&)> fields[] = {
      {"parts", [](auto& i) { i.part_count = 1; }},
      {"attention", [](auto& i) { i.attention = 1; }},
      {"shift", [](auto& i) { i.shift = 1; }},
      {"keep", [](auto& i) { i.keep = 1; }},
      {"steps_per_submission", [](auto& i) { i.steps_per_submission = 1; }}};
  for (const auto& [name, set] : fields) {
    MulciberGenerateInfo info = plain;
    set(info);
    CHECK_THAT(refused(info), ContainsSubstring(std::string("MulciberGenerateInfo::") + name +
                                                ": is given to mulciber_submit_generation"));
  }
  MulciberGenerateInfo info = plain;
  MulciberCancel* cancel = nullptr;
  REQUIRE(mulciber_create_cancel(c, &cancel) == MULCIBER_OK);
  info.cancel = cancel;
  CHECK_THAT(refused(info), ContainsSubstring("MulciberGenerateInfo::cancel"));
  mulciber_destroy_cancel(cancel);
  info = plain;
  info.likeliest = 21;
  CHECK_THAT(refused(info), ContainsSubstring("at most 20"));
  CHECK_THAT(twins.failed(mulciber_submit_generation(c, twins.batch, std::string(400, 'x').c_str(),
                                                     nullptr, nullptr, &number),
                          MULCIBER_ERROR_MODEL),
             ContainsSubstring("leaves no room"));
  CHECK_THAT(twins.refused(mulciber_submit_generation(c, nullptr, "The", &plain, nullptr, nullptr)),
             ContainsSubstring("batch: is NULL"));
  CHECK_THAT(twins.refused(mulciber_step_generations(c, twins.batch, nullptr)),
             ContainsSubstring("worked: is NULL"));
  CHECK_FALSE(twins.step());
  MulciberBatchInfo small = {sizeof(small)};
  small.cache_tokens = 8;
  MulciberBatchGenerator* none = twins.batch;
  CHECK_THAT(twins.refused(mulciber_load_batch_generator(c, &twins.device, twins.model, nullptr,
                                                         &small, &none)),
             ContainsSubstring("cache_tokens"));
  CHECK(none == nullptr);
  mulciber_destroy_batch_generator(nullptr);
}
