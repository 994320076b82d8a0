// Tasks in C: reports, restarts and results are those of C++.
#include <algorithm>
#include <string>
#include <vector>

#include "runtime/device.h"
#include "tests/c_destination.h"
#include "tests/c_session.h"
#include "tests/catch.h"
#include "tests/small_decoder.h"
#include "tests/support.h"

#include "mulciber/mulciber_c_load.h"
#include "mulciber/mulciber_c_tasks.h"
#include "mulciber/text_encoder.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

const char* const kTaskText = "The old house stands near the river.";

}  // namespace

TEST_CASE("A translation under way tells its text and its beams in C as in C++") {
  const Session session(bundled_model());
  MulciberContext* c = session.c;
  MulciberTranslator* translator = nullptr;
  MulciberTask* task = nullptr;
  REQUIRE(mulciber_load_translator(c, session.device, session.model, nullptr, &translator) ==
          MULCIBER_OK);
  const MulciberTranslateInfo beams = {sizeof(beams), 3, 0};
  REQUIRE(mulciber_begin_translation(c, translator, kTaskText, &beams, &task) == MULCIBER_OK);
  Translator same(adopt_device(session.host.lent()), bundled_model());
  TranslationTask twin(same, kTaskText, {.beams = 3});
  const auto run_both_to = [&](uint32_t steps) {
    while (mulciber_steps(task) < steps && !mulciber_is_done(task)) {
      MulciberStep step;
      REQUIRE(mulciber_step(c, task, 1, nullptr, &step) == MULCIBER_OK);
      REQUIRE(mulciber_wait(c, task) == MULCIBER_OK);
    }
    while (twin.steps() < steps && !twin.done()) {
      twin.step(1);
      twin.wait();
    }
    REQUIRE(mulciber_steps(task) == twin.steps());
  };
  const auto check_both = [&](const Translation& expected) {
    MulciberText found = {sizeof(found)};
    REQUIRE(mulciber_so_far(c, task, &found) == MULCIBER_OK);
    CHECK(found.text == expected.text);
    CHECK(found.score == expected.score);
    CHECK((found.complete != 0) == expected.complete);
    CHECK(std::vector(found.ids, found.ids + found.id_count) == expected.ids);
    CHECK(std::vector(found.source_ids, found.source_ids + found.source_count) ==
          expected.source_ids);
    REQUIRE(found.id_count == expected.tokens.size());
    for (uint32_t i = 0; i < found.id_count; ++i) CHECK(found.tokens[i] == expected.tokens[i]);
    REQUIRE(found.source_count == expected.source_tokens.size());
    for (uint32_t i = 0; i < found.source_count; ++i)
      CHECK(found.source_tokens[i] == expected.source_tokens[i]);
  };
  for (const uint32_t steps : {2u, 5u}) {
    run_both_to(steps);
    check_both(twin.so_far());
    uint32_t count = 0;
    const MulciberBeam* list = nullptr;
    REQUIRE(mulciber_beams(c, task, &count, &list) == MULCIBER_OK);
    const std::vector<Beam> expected = twin.beams();
    REQUIRE(count == expected.size());
    CHECK(count >= 3);
    for (uint32_t i = 0; i < count; ++i) {
      CHECK(list[i].text == expected[i].text);
      CHECK(list[i].score == expected[i].score);
      CHECK((list[i].finished != 0) == expected[i].finished);
      CHECK(std::vector(list[i].ids, list[i].ids + list[i].id_count) == expected[i].ids);
    }
  }
  run_both_to(1000);
  check_both(twin.result());

  // Maps of a growing text: first of the source with one token, then of the whole text.
  MulciberTask* attention = nullptr;
  REQUIRE(mulciber_begin_attention_of(c, translator, nullptr, task, 0, 64, &attention) ==
          MULCIBER_OK);
  CHECK(mulciber_restart_attention(c, attention, task) == MULCIBER_ERROR_SETTING);  // not done
  session.finish(attention);
  VkExtent2D before, after;
  REQUIRE(mulciber_attention_extent(c, attention, MULCIBER_ATTENTION_CROSS, &before) ==
          MULCIBER_OK);
  MulciberTask* shorter = nullptr;
  REQUIRE(mulciber_begin_translation(c, translator, "A dog.", nullptr, &shorter) == MULCIBER_OK);
  session.finish(shorter);
  REQUIRE(mulciber_restart_attention(c, attention, shorter) == MULCIBER_OK);
  mulciber_destroy_task(shorter);
  session.finish(attention);
  REQUIRE(mulciber_attention_extent(c, attention, MULCIBER_ATTENTION_CROSS, &after) == MULCIBER_OK);
  CHECK(after.height < before.height);
  CHECK(mulciber_attention_layers(attention, MULCIBER_ATTENTION_CROSS) > 0);
  CHECK(mulciber_attention_heads(attention, MULCIBER_ATTENTION_CROSS) > 0);
  CHECK(mulciber_attention_layers(task, MULCIBER_ATTENTION_CROSS) == 0);
  MulciberText none = {sizeof(none)};
  CHECK(mulciber_so_far(c, attention, &none) == MULCIBER_ERROR_SETTING);
  uint32_t count = 1;
  const MulciberBeam* list = nullptr;
  CHECK(mulciber_beams(c, attention, &count, &list) == MULCIBER_ERROR_SETTING);
  CHECK(count == 0);
  CHECK(mulciber_trim(c, translator) == MULCIBER_OK);
  for (MulciberTask* one : {task, attention}) mulciber_destroy_task(one);
  mulciber_destroy_translator(translator);
}

TEST_CASE("Vectors in slices in C are those in C++") {
  const Session session(small_encoder());
  MulciberContext* c = session.c;
  MulciberTextEncoder* encoder = nullptr;
  MulciberTask* task = nullptr;
  REQUIRE(mulciber_load_text_encoder(c, session.device, session.model, nullptr, &encoder) ==
          MULCIBER_OK);
  MulciberWarmup* warmup = nullptr;
  REQUIRE(mulciber_warm_text_encoder(c, encoder, nullptr, 24, &warmup) == MULCIBER_OK);
  uint32_t left = 1;
  while (left > 0) REQUIRE(mulciber_prewarm(c, warmup, 8, &left) == MULCIBER_OK);
  mulciber_destroy_warmup(warmup);
  const uint64_t made = mulciber_pipelines_made(session.device);
  REQUIRE(mulciber_begin_embedding(c, encoder, "A red house.", nullptr, &task) == MULCIBER_OK);
  CHECK(mulciber_embedding_tokens(task) > 2);
  CHECK_FALSE(mulciber_is_recorded(task));
  const uint32_t width = mulciber_vector_width(encoder);
  std::vector<float> vector(width);
  CHECK(mulciber_vector(c, task, vector.data()) == MULCIBER_ERROR_SETTING);  // not done
  session.finish(task);
  CHECK(mulciber_is_recorded(task));
  REQUIRE(mulciber_vector(c, task, vector.data()) == MULCIBER_OK);
  CHECK(mulciber_pipelines_made(session.device) == made);
  const auto device = adopt_device(session.host.lent());
  CHECK(vector == TextEncoder(device, small_encoder()).embed("A red house.").values);

  const uint32_t tokens = mulciber_embedding_tokens(task);
  const Destination alone(*device, width), states(*device, uint64_t{tokens} * width);
  const MulciberHostBuffer to_vector = c_buffer(alone), to_states = c_buffer(states);
  HostCommands commands(session.host);
  commands.run([&](VkCommandBuffer buffer) {
    CHECK(mulciber_record_vector(c, task, buffer, &to_vector) == MULCIBER_OK);
    CHECK(mulciber_record_states(c, task, buffer, &to_states) == MULCIBER_OK);
  });
  CHECK(std::equal(vector.begin(), vector.end(), alone.floats()));
  CHECK(std::any_of(states.floats(), states.floats() + uint64_t{tokens} * width,
                    [](float value) { return value != 0; }));
  const char* text = nullptr;
  CHECK(mulciber_text(c, task, &text) == MULCIBER_ERROR_SETTING);
  mulciber_destroy_task(task);

  // Rows of embeddings replace the text: every number of the buffer is 0.25.
  const uint32_t columns = mulciber_embedding_width(encoder);
  const Destination rows(*device, uint64_t{3} * columns);
  std::fill_n(const_cast<float*>(rows.floats()), 3 * columns, 0.25f);
  MulciberHostBuffer from = c_buffer(rows);
  REQUIRE(mulciber_begin_embedding_of_rows(c, encoder, &from, 3, nullptr, &task) == MULCIBER_OK);
  session.finish(task);
  REQUIRE(mulciber_vector(c, task, vector.data()) == MULCIBER_OK);
  mulciber_destroy_task(task);
  TextEncoder same(device, small_encoder());
  EmbeddingTask twin(same, rows.buffer, 3);
  finish(twin);
  CHECK(vector == twin.result().values);
  from.bytes -= 4;
  CHECK(mulciber_begin_embedding_of_rows(c, encoder, &from, 3, nullptr, &task) ==
        MULCIBER_ERROR_SETTING);
  CHECK(task == nullptr);
  mulciber_destroy_text_encoder(encoder);
}

TEST_CASE("Prompts in parts, logits and states in C are those in C++") {
  const Session session(small_decoder().string());
  MulciberContext* c = session.c;
  MulciberGenerator* generator = nullptr;
  MulciberTask* task = nullptr;
  MulciberLoadInfo load = {sizeof(load)};
  load.context = 64;
  REQUIRE(mulciber_load_generator(c, session.device, session.model, &load, &generator) ==
          MULCIBER_OK);
  const auto device = adopt_device(session.host.lent());
  TextGenerator same(device, small_decoder().string(), {.context = 64});
  const uint32_t width = mulciber_generator_width(generator),
                 vocabulary = mulciber_vocabulary(generator);
  CHECK(width == same.width());
  CHECK(vocabulary == same.vocabulary());
  const Destination rows(*device, uint64_t{2} * width);
  std::fill_n(const_cast<float*>(rows.floats()), 2 * width, 0.5f);
  const Destination logits(*device, uint64_t{4} * vocabulary), states(*device, 64ull * width),
      twin_logits(*device, uint64_t{4} * vocabulary), twin_states(*device, 64ull * width);
  const MulciberHostBuffer from = c_buffer(rows), to_logits = c_buffer(logits),
                           to_states = c_buffer(states);
  MulciberPromptPart parts[2] = {{sizeof(parts[0])}, {sizeof(parts[0])}};
  parts[0].tokens = 2;
  parts[0].embeddings = &from;
  parts[1].text = "and the blue nails";
  const MulciberGenerationOutputs outputs = {sizeof(outputs), &to_logits, &to_states};
  MulciberGenerateInfo info = {sizeof(info)};
  info.max_new_tokens = 4;
  info.ignore_end = VK_TRUE;
  REQUIRE(mulciber_begin_generation_of(c, generator, 2, parts, &info, &outputs, &task) ==
          MULCIBER_OK);
  session.finish(task);
  const std::vector<PromptPart> prompt = {{.text = "", .embeddings = rows.buffer, .tokens = 2},
                                          {.text = "and the blue nails", .embeddings = {}}};
  GenerationTask twin(same, prompt, {.max_new_tokens = 4, .ignore_end = true},
                      {.logits = twin_logits.buffer, .states = twin_states.buffer});
  finish(twin);
  const Generation expected = twin.result();
  MulciberText found = {sizeof(found)};
  REQUIRE(mulciber_so_far(c, task, &found) == MULCIBER_OK);
  CHECK(found.complete);
  CHECK(found.text == expected.text);
  CHECK(std::vector(found.ids, found.ids + found.id_count) == expected.ids);
  CHECK(std::vector(found.source_ids, found.source_ids + found.source_count) ==
        expected.prompt_ids);
  CHECK(found.source_ids[1] == kNoTokenId);
  CHECK(std::string(found.source_tokens[1]).empty());
  CHECK(mulciber_steps(task) == 4);
  CHECK(std::equal(logits.floats(), logits.floats() + 4 * vocabulary, twin_logits.floats()));
  const size_t known = (expected.prompt_ids.size() + expected.ids.size() - 1) * width;
  CHECK(std::equal(states.floats(), states.floats() + known, twin_states.floats()));
  MulciberTask* attention = nullptr;  // embeddings have no ids
  CHECK(mulciber_begin_attention_of(c, nullptr, generator, task, 0, 0, &attention) ==
        MULCIBER_ERROR_MODEL);
  mulciber_destroy_task(task);

  REQUIRE(mulciber_begin_generation(c, generator, "The red hammer", &info, &task) == MULCIBER_OK);
  session.finish(task);
  REQUIRE(mulciber_begin_attention_of(c, nullptr, generator, task, 0, 32, &attention) ==
          MULCIBER_OK);
  session.finish(attention);
  CHECK(mulciber_attention_layers(attention, MULCIBER_ATTENTION_DECODER) == 3);
  mulciber_destroy_task(attention);
  CHECK(mulciber_begin_attention_of(c, nullptr, nullptr, task, 0, 0, &attention) ==
        MULCIBER_ERROR_SETTING);
  MulciberPromptPart empty = {sizeof(empty)};
  MulciberTask* refused = nullptr;
  CHECK(mulciber_begin_generation_of(c, generator, 1, &empty, &info, nullptr, &refused) ==
        MULCIBER_ERROR_SETTING);
  CHECK(mulciber_begin_generation_of(c, generator, 1, nullptr, &info, nullptr, &refused) ==
        MULCIBER_ERROR_SETTING);
  mulciber_destroy_task(task);
  mulciber_destroy_generator(generator);
}

TEST_CASE("A device's report and requirements with options in C are those in C++") {
  const Session session(small_decoder().string());
  MulciberContext* c = session.c;
  MulciberDeviceReport report = {sizeof(report)};
  REQUIRE(mulciber_describe_device(c, session.device, &report) == MULCIBER_OK);
  const auto device = adopt_device(session.host.lent());
  const DeviceDescription expected = describe(*device);
  CHECK(report.name == expected.name);
  CHECK(report.driver == expected.driver);
  CHECK((report.software != 0) == expected.software);
  CHECK(report.occupancy_priority == expected.occupancy_priority);
  CHECK(report.queue_priority == MULCIBER_QUEUE_PRIORITY_DEFAULT);

  MulciberBorders borders = {sizeof(borders)};
  REQUIRE(mulciber_borders(c, &borders) == MULCIBER_OK);
  CHECK((borders.waits_for_stages & VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT) != 0);
  CHECK((borders.shown_to_accesses & VK_ACCESS_HOST_READ_BIT) != 0);

  const Lent lent(session.host);
  MulciberRequirements some = {sizeof(some)}, more = {sizeof(more)};
  MulciberLoadInfo load = {sizeof(load)};
  load.context = 32;
  REQUIRE(mulciber_requirements_with(c, &lent.physical, session.model, &load, &some) ==
          MULCIBER_OK);
  const uint64_t bytes = some.context_bytes;
  load.context = 96;
  REQUIRE(mulciber_requirements_with(c, &lent.physical, session.model, &load, &more) ==
          MULCIBER_OK);
  CHECK(more.context_bytes > bytes);
  load.memory_limit = 1000;
  REQUIRE(mulciber_requirements_with(c, &lent.physical, session.model, &load, &more) ==
          MULCIBER_OK);
  CHECK_FALSE(more.fits);
  CHECK_THAT(more.obstacles, ContainsSubstring("memory"));
  CHECK(mulciber_describe_device(c, nullptr, &report) == MULCIBER_ERROR_SETTING);

  // A priority out of range is refused, where a device takes one.
  MulciberDeviceInfo info = lent.info;
  info.occupancy_priority = 2;
  MulciberDevice* refused = nullptr;
  CHECK(mulciber_adopt_device(c, &info, &refused) == MULCIBER_ERROR_SETTING);
}
