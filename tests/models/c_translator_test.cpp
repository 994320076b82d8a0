// Translations in C: partial results and restarts are those of C++.
#include <vector>

#include "runtime/device.h"
#include "tests/c_session.h"
#include "tests/catch.h"
#include "tests/support.h"

#include "mulciber/embedding.h"
#include "mulciber/mulciber_c.h"

using namespace mulciber;
using namespace mulciber::tests;

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
  Translator same(adopt_device(session.application.lent()), bundled_model());
  TranslationTask twin(same, kTaskText, {.beams = 3});
  const auto run_both_to = [&](uint32_t steps) {
    while (mulciber_steps(task) < steps && !mulciber_is_done(task)) {
      MulciberStep step = {sizeof(step)};
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
  MulciberAttentionInfo maps = {sizeof(maps)};
  maps.translator = translator;
  maps.room = 64;
  REQUIRE(mulciber_begin_attention_maps(c, task, &maps, &attention) == MULCIBER_OK);
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
