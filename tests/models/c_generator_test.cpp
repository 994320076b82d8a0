// Text generation in C: prompts in parts and outputs on the device are those of C++.
#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "runtime/device.h"
#include "tests/c_destination.h"
#include "tests/c_session.h"
#include "tests/catch.h"
#include "tests/small_decoder.h"
#include "tests/support.h"

#include "mulciber/embedding.h"
#include "mulciber/mulciber_c.h"

using namespace mulciber;
using namespace mulciber::tests;

TEST_CASE("Prompts in parts, logits and states in C are those in C++") {
  const Session session(small_decoder().string());
  MulciberContext* c = session.c;
  MulciberGenerator* generator = nullptr;
  MulciberTask* task = nullptr;
  MulciberLoadInfo load = {sizeof(load)};
  load.context = 64;
  REQUIRE(mulciber_load_generator(c, session.device, session.model, &load, &generator) ==
          MULCIBER_OK);
  const auto device = adopt_device(session.application.lent());
  TextGenerator same(device, small_decoder().string(), {.context = 64});
  const uint32_t width = mulciber_generator_width(generator),
                 vocabulary = mulciber_vocabulary(generator);
  CHECK(width == same.width());
  CHECK(vocabulary == same.vocabulary());
  const Destination rows(*device, uint64_t{2} * width);
  std::fill_n(const_cast<float*>(rows.floats()), 2 * width, 0.5f);
  const Destination logits(*device, uint64_t{4} * vocabulary), states(*device, 64ull * width),
      twin_logits(*device, uint64_t{4} * vocabulary), twin_states(*device, 64ull * width);
  const MulciberApplicationBuffer from = c_buffer(rows), to_logits = c_buffer(logits),
                                  to_states = c_buffer(states);
  MulciberPromptPart parts[2] = {{sizeof(parts[0])}, {sizeof(parts[0])}};
  parts[0].tokens = 2;
  parts[0].embeddings = &from;
  parts[1].text = "and the blue nails";
  const MulciberGenerationOutputs outputs = {sizeof(outputs), &to_logits, &to_states};
  MulciberGenerateInfo info = {sizeof(info)};
  info.max_new_tokens = 4;
  info.ignore_end = VK_TRUE;
  MulciberGenerateInfo in_parts = info;
  in_parts.parts = parts;
  in_parts.part_count = 2;
  in_parts.outputs = &outputs;
  REQUIRE(mulciber_begin_generation(c, generator, nullptr, &in_parts, &task) == MULCIBER_OK);
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
  MulciberAttentionInfo maps = {sizeof(maps)};
  maps.generator = generator;
  CHECK(mulciber_begin_attention_maps(c, task, &maps, &attention) == MULCIBER_ERROR_MODEL);
  mulciber_destroy_task(task);

  REQUIRE(mulciber_begin_generation(c, generator, "The red hammer", &info, &task) == MULCIBER_OK);
  session.finish(task);
  maps.room = 32;
  REQUIRE(mulciber_begin_attention_maps(c, task, &maps, &attention) == MULCIBER_OK);
  session.finish(attention);
  CHECK(mulciber_attention_layers(attention, MULCIBER_ATTENTION_DECODER) == 3);
  mulciber_destroy_task(attention);
  maps.generator = nullptr;
  CHECK(mulciber_begin_attention_maps(c, task, &maps, &attention) == MULCIBER_ERROR_SETTING);
  MulciberPromptPart empty = {sizeof(empty)};
  MulciberTask* refused = nullptr;
  in_parts = info;
  in_parts.part_count = 1;
  for (const MulciberPromptPart* none : {&empty, static_cast<MulciberPromptPart*>(nullptr)}) {
    in_parts.parts = none;
    CHECK(mulciber_begin_generation(c, generator, nullptr, &in_parts, &refused) ==
          MULCIBER_ERROR_SETTING);
  }
  in_parts.parts = parts;
  CHECK(mulciber_begin_generation(c, generator, "and a text", &in_parts, &refused) ==
        MULCIBER_ERROR_SETTING);
  CHECK(mulciber_begin_generation(c, generator, nullptr, &info, &refused) ==
        MULCIBER_ERROR_SETTING);
  mulciber_destroy_task(task);
  // A top_p of 0 stands for all tokens; other numbers out of range do not.
  info.sample = VK_TRUE;
  info.temperature = 1;
  for (const float top_p : {-0.5f, std::numeric_limits<float>::quiet_NaN()}) {
    info.top_p = top_p;
    CHECK(mulciber_begin_generation(c, generator, "The red", &info, &refused) ==
          MULCIBER_ERROR_SETTING);
    CHECK_THAT(session.context.message(), Catch::Matchers::ContainsSubstring("top p"));
  }
  info.top_p = 0;
  REQUIRE(mulciber_begin_generation(c, generator, "The red", &info, &task) == MULCIBER_OK);
  mulciber_destroy_task(task);
  mulciber_destroy_generator(generator);
}
