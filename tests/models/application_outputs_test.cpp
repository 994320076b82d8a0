// Results that never pass the CPU: logits, states and vectors go into the application's buffers,
// embeddings come from one.
#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "checkpoints/tensor_values.h"
#include "models/families/open_model.h"
#include "runtime/device.h"
#include "runtime/transfer.h"
#include "tests/application_destination.h"
#include "tests/catch.h"
#include "tests/small_decoder.h"
#include "tests/support.h"
#include "tests/vulkan_application.h"

#include "mulciber/embedding.h"

using namespace mulciber;
using namespace mulciber::tests;

namespace {

const std::string kOutputsPrompt = "The red hammer and the blue nails of the old house";

std::vector<float> copied(const Destination& from, uint64_t count) {
  return {from.floats(), from.floats() + count};
}

/// Records slices of random budgets until a task is done. No slice allocates or makes a pipeline.
void record_at_random(Device& device, ApplicationCommands& commands, FrameTask& task,
                      uint32_t seed) {
  std::mt19937 random(seed);
  const uint64_t allocations = device.counters().allocations,
                 pipelines = device.counters().pipelines;
  while (!task.done()) {
    FrameSlice slice;
    commands.run([&](VkCommandBuffer buffer) {
      slice = task.record(buffer, static_cast<double>(random() % 800));
    });
    REQUIRE(slice.number > 0);
    task.completed(slice.number);
  }
  CHECK(device.counters().allocations == allocations);
  CHECK(device.counters().pipelines == pipelines);
}

}  // namespace

TEST_CASE("A text's vector and states stand in an application's buffers as embed() gives them") {
  VulkanApplication application;
  const auto device = adopt_device(application.lent());
  TextEncoder encoder(device, small_encoder());
  ApplicationCommands commands(application);
  const std::string text = "The red hammer strikes the anvil.";
  for (const bool normalize : {false, true}) {
    const EmbedOptions options = {.normalize = normalize};
    const TextVector whole = encoder.embed(text, options);
    EmbeddingTask task(encoder, text, options);
    CHECK(task.tokens() == whole.tokens);
    CHECK_FALSE(task.recorded());
    CHECK_THROWS_AS(task.result(), SettingError);
    record_at_random(*device, commands, task, 3);
    REQUIRE(task.recorded());
    const TextVector cut = task.result();
    CHECK(cut.values == whole.values);
    CHECK(cut.tokens == whole.tokens);
    CHECK(cut.complete);
    const uint64_t width = encoder.width();
    const Destination vector(*device, width), states(*device, width * task.tokens());
    run_commands(*device, [&](VkCommandBuffer buffer) {
      task.record_vector(buffer, vector.buffer);
      task.record_states(buffer, states.buffer);
    });
    CHECK(copied(vector, width) == whole.values);
    const EmbedOptions first = {.pooling = Pooling::kFirst, .normalize = false};
    CHECK(copied(states, width) == encoder.embed(text, first).values);
    ApplicationBuffer small = states.buffer;
    small.size -= 4;
    CHECK_THROWS_AS(
        run_commands(*device, [&](VkCommandBuffer buffer) { task.record_states(buffer, small); }),
        SettingError);
  }
  EmbeddingTask cancelled(encoder, text);
  cancelled.step(1);
  cancelled.cancel();
  cancelled.wait();
  CHECK_FALSE(cancelled.result().complete);
  CHECK_THROWS_AS(EmbeddingTask(encoder, text, {.pooling = Pooling::kPooler}), ModelError);
}

TEST_CASE("Embeddings from an application's buffer give the vector of the text that they are of") {
  VulkanApplication application;
  const auto device = adopt_device(application.lent());
  const auto model = open_model(small_encoder());
  TextEncoder encoder(device, model);
  const CheckpointTensor* table = nullptr;
  for (const CheckpointTensor* tensor : model->checkpoint().tensors()) {
    if (tensor->name.find("word_embeddings.weight") != std::string::npos) table = tensor;
  }
  REQUIRE(table);
  const uint32_t width = encoder.embedding_width();
  for (const std::string text : {"iron", "Why did the smith melt 42 crucibles?"}) {
    const std::vector<int32_t> ids = model->tokenizer()->encode(text);
    std::vector<float> rows;
    for (const int32_t id : ids) {
      const std::vector<float> row = read_floats(*table, static_cast<uint64_t>(id) * width, width);
      rows.insert(rows.end(), row.begin(), row.end());
    }
    const Buffer given = device->memory().allocate(rows.size() * 4, MemoryUsage::kActivations);
    upload(*device, given.view(), std::as_bytes(std::span(rows)));
    ApplicationBuffer from;
    from.buffer = given.view().buffer;
    from.offset = given.view().offset;
    from.size = rows.size() * sizeof(float);
    const auto tokens = static_cast<uint32_t>(ids.size());
    EmbeddingTask task(encoder, from, tokens);
    ApplicationCommands commands(application);
    record_at_random(*device, commands, task, 4);
    CHECK(task.result().values == encoder.embed(text).values);
    from.size -= 4;
    CHECK_THROWS_AS(EmbeddingTask(encoder, from, tokens), SettingError);
  }
  ApplicationBuffer none;
  CHECK_THROWS_AS(EmbeddingTask(encoder, none, 3), SettingError);
}

TEST_CASE("Each step leaves the logits that its token was chosen from") {
  VulkanApplication application;
  const auto device = adopt_device(application.lent());
  TextGenerator generator(device, small_decoder().string(), {.context = 96});
  const uint64_t vocabulary = generator.vocabulary();
  const GenerateOptions options = {
      .sampling = Sampling{.temperature = 0}, .max_new_tokens = 10, .ignore_end = true};
  const Generation whole = generator.generate(kOutputsPrompt, options);
  ApplicationCommands commands(application);
  const auto logits_of = [&](uint32_t rows, uint32_t seed) {
    const Destination to(*device, rows * vocabulary);
    TextGenerator fresh(device, small_decoder().string(), {.context = 96});
    GenerationTask task(fresh, kOutputsPrompt, options, {.logits = to.buffer});
    record_at_random(*device, commands, task, seed);
    CHECK(task.result().ids == whole.ids);
    return copied(to, rows * vocabulary);
  };
  constexpr uint32_t kRows = 16;
  const std::vector<float> logits = logits_of(kRows, 1);
  for (size_t i = 0; i < whole.ids.size(); ++i) {
    const auto row = logits.begin() + static_cast<std::ptrdiff_t>(i * vocabulary);
    const auto best = std::max_element(row, row + static_cast<std::ptrdiff_t>(vocabulary));
    CHECK(static_cast<uint32_t>(best - row) == whole.ids[i]);
  }
  // The cuts between slices change no bit.
  const auto part = static_cast<std::ptrdiff_t>(whole.ids.size() * vocabulary);
  const std::vector<float> again = logits_of(kRows, 2);
  CHECK(std::equal(logits.begin(), logits.begin() + part, again.begin()));
  // One pass over the whole text computes the same in another order.
  const auto model = open_decoder(small_decoder(), {.cache = DataType::kF16});
  std::vector<uint32_t> ids = whole.prompt_ids;
  ids.insert(ids.end(), whole.ids.begin(), whole.ids.end());
  const std::vector<std::string> wanted = {"logits"};
  const std::vector<double> expected =
      model->forward({{"input_ids", {{1, ids.size()}, {ids.begin(), ids.end()}}}}, wanted)
          .at("logits")
          .values;
  double worst = 0;
  for (size_t i = 0; i < whole.ids.size(); ++i) {
    const size_t token = whole.prompt_ids.size() - 1 + i;
    for (size_t id = 0; id < vocabulary; ++id)
      worst = std::max(
          worst, std::abs(expected[token * vocabulary + id] - double{logits[i * vocabulary + id]}));
  }
  CHECK(worst < 1e-2);
  ApplicationBuffer small;
  small.buffer = reinterpret_cast<VkBuffer>(uint64_t{1});  // refused before it is used
  small.size = vocabulary * 4 - 4;
  CHECK_THROWS_AS(GenerationTask(generator, kOutputsPrompt, options, {.logits = small}),
                  SettingError);
}

TEST_CASE("The hidden states of prompt and answer stand in an application's buffer") {
  VulkanApplication application;
  const auto device = adopt_device(application.lent());
  TextGenerator generator(device, small_decoder().string(), {.context = 96});
  const size_t width = generator.width();
  const GenerateOptions options = {
      .sampling = Sampling{.temperature = 0}, .max_new_tokens = 10, .ignore_end = true};
  const Generation whole = generator.generate(kOutputsPrompt, options);
  ApplicationCommands commands(application);
  const auto states_of = [&](uint32_t rows, uint32_t seed) {
    const Destination to(*device, rows * width);
    GenerationTask task(generator, kOutputsPrompt, options, {.logits = {}, .states = to.buffer});
    record_at_random(*device, commands, task, seed);
    CHECK(task.result().ids == whole.ids);
    return copied(to, rows * width);
  };
  std::vector<uint32_t> ids = whole.prompt_ids;
  ids.insert(ids.end(), whole.ids.begin(), whole.ids.end());
  const size_t known = ids.size() - 1;  // the last token was chosen but not read
  const std::vector<float> states = states_of(96, 1);
  const std::vector<float> again = states_of(96, 2);
  CHECK(std::equal(again.begin(), again.begin() + static_cast<ptrdiff_t>(known * width),
                   states.begin()));
  const auto model = open_decoder(small_decoder(), {.cache = DataType::kF16});
  const std::vector<std::string> wanted = {"hidden_states"};
  const std::vector<double> all =
      model->forward({{"input_ids", {{1, ids.size()}, {ids.begin(), ids.end()}}}}, wanted)
          .at("hidden_states")
          .values;
  const size_t last = all.size() - ids.size() * width;  // in the last layer
  double worst = 0, largest = 0;
  for (size_t i = 0; i < known * width; ++i) {
    worst = std::max(worst, std::abs(all[last + i] - double{states[i]}));
    largest = std::max(largest, std::abs(all[last + i]));
  }
  CHECK(largest > 0.5);
  CHECK(worst < 2e-3 * largest);
  // With fewer rows than tokens, the last tokens' states stay, each in row token % rows. Steps that
  // were begun before the end was known may write more rows; there are none here, because the
  // answer's limit is known.
  const std::vector<float> ring = states_of(7, 3);
  for (size_t token = known - 7; token < known; ++token) {
    const auto row = ring.begin() + static_cast<ptrdiff_t>(token % 7 * width);
    INFO(token);
    CHECK(std::equal(row, row + static_cast<ptrdiff_t>(width),
                     states.begin() + static_cast<ptrdiff_t>(token * width)));
  }
  ApplicationBuffer small;
  small.buffer = reinterpret_cast<VkBuffer>(uint64_t{1});  // refused before it is used
  small.size = width * 4 - 4;
  CHECK_THROWS_AS(
      GenerationTask(generator, kOutputsPrompt, options, {.logits = {}, .states = small}),
      SettingError);
}

TEST_CASE("Embeddings of an application's stand for a prompt's tokens, or for some of them") {
  VulkanApplication application;
  const auto device = adopt_device(application.lent());
  const auto model = open_model(small_decoder().string());
  TextGenerator generator(device, model, {.context = 96});
  const size_t width = generator.width(), vocabulary = generator.vocabulary();
  const CheckpointTensor& table = model->checkpoint().at("model.embed_tokens.weight");
  const float multiplier = std::sqrt(static_cast<float>(width));  // Gemma's
  ApplicationCommands commands(application);
  const GenerateOptions options = {
      .sampling = Sampling{.temperature = 0}, .max_new_tokens = 6, .ignore_end = true};
  const auto logits_of = [&](const std::vector<PromptPart>& prompt, const GenerateOptions& how) {
    TextGenerator fresh = generator.conversation();
    const Destination to(*device, 6 * vocabulary);
    GenerationTask task(fresh, prompt, how, {.logits = to.buffer});
    record_at_random(*device, commands, task, 5);
    return std::pair(task.result(), copied(to, 6 * vocabulary));
  };
  const auto [expected, logits] = logits_of({{.text = kOutputsPrompt, .embeddings = {}}}, options);
  const std::vector<uint32_t>& ids = expected.prompt_ids;
  std::vector<float> rows;
  for (const uint32_t id : ids)
    for (const float value : read_floats(table, uint64_t{id} * width, width))
      rows.push_back(value * multiplier);
  const Buffer given = device->memory().allocate(rows.size() * 4, MemoryUsage::kActivations);
  upload(*device, given.view(), std::as_bytes(std::span(rows)));
  const auto part = [&](size_t first, size_t tokens) {
    ApplicationBuffer from;
    from.buffer = given.view().buffer;
    from.offset = given.view().offset + first * width * 4;
    from.size = tokens * width * 4;
    return PromptPart{.text = "", .embeddings = from, .tokens = static_cast<uint32_t>(tokens)};
  };
  // With embeddings for all tokens, begin of text included, the passes and so the bits are the
  // same.
  GenerateOptions bare = options;
  bare.add_special = false;
  const auto [of_rows, row_logits] = logits_of({part(0, ids.size())}, bare);
  CHECK(of_rows.ids == expected.ids);
  CHECK(of_rows.text == expected.text);
  CHECK(row_logits == logits);
  CHECK(of_rows.prompt_ids == std::vector<uint32_t>(ids.size(), kNoTokenId));
  // With embeddings between texts, in two parts, the passes differ and add in another order.
  const std::vector<uint32_t> front =
      generator.generate("The red", {.max_new_tokens = 1}).prompt_ids;
  REQUIRE(front.size() <= ids.size());
  REQUIRE(std::equal(front.begin(), front.end(), ids.begin()));
  const std::vector<PromptPart> parts = {{.text = "The red", .embeddings = {}},
                                         part(front.size(), 2),
                                         part(front.size() + 2, ids.size() - front.size() - 2)};
  const auto [mixed, mixed_logits] = logits_of(parts, options);
  CHECK(mixed.ids == expected.ids);
  double worst = 0;
  for (size_t i = 0; i < logits.size(); ++i)
    worst = std::max(worst, std::abs(double{logits[i]} - double{mixed_logits[i]}));
  CHECK(worst < 1e-2);
  // The token that is put in front of texts is put in front of embeddings too: one token more.
  CHECK(logits_of({part(1, 3)}, options).first.prompt_ids.size() == 4);
  // Embeddings are never mistaken for those of another prompt.
  {
    GenerationTask task(generator, parts, options);
    record_at_random(*device, commands, task, 7);
    CHECK(task.result().ids == expected.ids);
  }
  {
    auto others = parts;
    others[1] = part(0, 2);
    GenerationTask task(generator, others, options);
    record_at_random(*device, commands, task, 8);
    CHECK(task.result().ids == logits_of(others, options).first.ids);
  }
  CHECK(generator.generate(kOutputsPrompt, options).ids == expected.ids);

  auto wrong = part(0, 4);
  wrong.embeddings.size -= 4;
  CHECK_THROWS_AS(GenerationTask(generator, {wrong}, options), SettingError);
  wrong = part(0, 4);
  wrong.text = "and a text";
  CHECK_THROWS_AS(GenerationTask(generator, {wrong}, options), SettingError);
  wrong = part(0, 4);
  wrong.tokens = 95;
  wrong.embeddings.size = 95 * width * 4;
  CHECK_THROWS_AS(GenerationTask(generator, {wrong}, options), ModelError);  // too long
  CHECK_THROWS_AS(GenerationTask(generator, std::vector<PromptPart>(), bare), ModelError);
}

TEST_CASE("A task's programs stay until they ran, however many others were there before") {
  VulkanApplication application;
  const auto device = adopt_device(application.lent());
  TextGenerator generator(device, small_decoder().string(), {.context = 96});
  // A prompt of `tokens` tokens or a few more, whose first token no earlier prompt had.
  const auto prompt_of_tokens = [&](size_t tokens) {
    std::string text = std::to_string(tokens);
    while (generator.count_tokens(text) < tokens) text += " hammer";
    return text;
  };
  const GenerateOptions options = {.max_new_tokens = 2, .ignore_end = true};
  // Passes of 8, 16, 32 and 64 tokens: the cache of programs holds no more. The task's passes are
  // of 64 and 16.
  for (const size_t tokens : {5, 12, 24, 56}) generator.generate(prompt_of_tokens(tokens), options);
  ApplicationCommands commands(application);
  GenerationTask task(generator, prompt_of_tokens(74), options);
  // Meanwhile the generator belongs to the task.
  CHECK_THROWS_AS(GenerationTask(generator, kOutputsPrompt, options), SettingError);
  CHECK_THROWS_AS(generator.generate(kOutputsPrompt, options), SettingError);
  CHECK_THROWS_AS(generator.save_cache(), SettingError);
  CHECK_NOTHROW(generator.conversation().generate(kOutputsPrompt, options));
  record_at_random(*device, commands, task, 6);
  CHECK(task.result().ids.size() == 2);
}
