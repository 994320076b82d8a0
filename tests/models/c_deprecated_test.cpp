// Deprecated functions of the C interface: each does what the one does that replaced it.
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
#include "mulciber/mulciber_c_pictures.h"
#include "mulciber/mulciber_c_tasks.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

TEST_CASE("Deprecated requirements in C are those that replaced them") {
  const Session session(small_decoder().string());
  MulciberContext* c = session.c;
  const Lent lent(session.application);
  MulciberLoadInfo load = {sizeof(load)};
  load.context = 32;
  MulciberRequirements found = {sizeof(found)};
  REQUIRE(mulciber_query_requirements(c, &lent.physical, session.model, &load, &found) ==
          MULCIBER_OK);
  const uint64_t bytes = found.context_bytes;
  REQUIRE(mulciber_requirements_with(c, &lent.physical, session.model, &load, &found) ==
          MULCIBER_OK);
  CHECK(found.context_bytes == bytes);
  REQUIRE(mulciber_requirements(c, &lent.physical, session.model, &found) == MULCIBER_OK);
  CHECK(found.context_bytes != bytes);
}

TEST_CASE("A device that is opened by its deprecated name is that of its options") {
  const Context context;
  MulciberContext* c = context.handle;
  MulciberDevice* device = nullptr;
  CHECK(mulciber_open_device(c, "no device of that name", &device) == MULCIBER_ERROR_UNAVAILABLE);
  CHECK(device == nullptr);
  const std::string best = list_devices().front().name;
  for (const char* name : {static_cast<const char*>(nullptr), "0", best.c_str()}) {
    REQUIRE(mulciber_open_device(c, name, &device) == MULCIBER_OK);
    MulciberDeviceReport report = {sizeof(report)};
    REQUIRE(mulciber_describe_device(c, device, &report) == MULCIBER_OK);
    CHECK(report.name == best);
    mulciber_destroy_device(device);
  }
}

TEST_CASE("Deprecated functions of answers in C do what those do that replaced them") {
  const Session session(small_decoder().string());
  MulciberContext* c = session.c;
  MulciberLoadInfo load = {sizeof(load)};
  load.context = 64;
  MulciberLoader* loader = nullptr;
  REQUIRE(mulciber_begin_load_adapted(c, session.device, session.model, &load, 0, nullptr, VK_FALSE,
                                      &loader) == MULCIBER_OK);
  MulciberLoadProgress progress = {sizeof(progress)};
  while (!progress.complete)
    REQUIRE(mulciber_step_load(c, loader, 1 << 20, &progress) == MULCIBER_OK);
  MulciberGenerator* generator = nullptr;
  REQUIRE(mulciber_finish_generator(c, loader, &generator) == MULCIBER_OK);
  mulciber_destroy_loader(loader);
  CHECK(mulciber_begin_load_adapted(c, session.device, session.model, &load, 1, nullptr, VK_FALSE,
                                    &loader) == MULCIBER_ERROR_SETTING);
  CHECK(loader == nullptr);

  MulciberGenerateInfo info = {sizeof(info)};
  info.max_new_tokens = 4;
  info.ignore_end = VK_TRUE;
  const auto text_of = [&](MulciberTask* task) {
    session.finish(task);
    const char* text = nullptr;
    REQUIRE(mulciber_text(c, task, &text) == MULCIBER_OK);
    return std::string(text);
  };
  MulciberTask* task = nullptr;
  REQUIRE(mulciber_begin_generation(c, generator, "The red hammer", &info, &task) == MULCIBER_OK);
  const std::string expected = text_of(task);
  mulciber_destroy_task(task);
  MulciberPromptPart part = {sizeof(part)};
  part.text = "The red hammer";
  REQUIRE(mulciber_begin_generation_of(c, generator, 1, &part, &info, nullptr, &task) ==
          MULCIBER_OK);
  CHECK(text_of(task) == expected);
  MulciberTask* attention = nullptr;
  REQUIRE(mulciber_begin_attention_of(c, nullptr, generator, task, 0, 32, &attention) ==
          MULCIBER_OK);
  CHECK(mulciber_attention_layers(attention, MULCIBER_ATTENTION_DECODER) == 3);
  mulciber_destroy_task(attention);
  mulciber_destroy_task(task);
  info.size = 1;
  CHECK(mulciber_begin_generation_of(c, generator, 1, &part, &info, nullptr, &task) ==
        MULCIBER_ERROR_SETTING);
  CHECK(task == nullptr);
  mulciber_destroy_generator(generator);
}

TEST_CASE("Deprecated attention maps of a translation in C demand that it is done") {
  const Session session(bundled_model());
  MulciberContext* c = session.c;
  MulciberTranslator* translator = nullptr;
  MulciberTask *translation = nullptr, *attention = nullptr;
  REQUIRE(mulciber_load_translator(c, session.device, session.model, nullptr, &translator) ==
          MULCIBER_OK);
  REQUIRE(mulciber_begin_translation(c, translator, "A dog.", nullptr, &translation) ==
          MULCIBER_OK);
  CHECK(mulciber_begin_attention(c, translator, translation, &attention) == MULCIBER_ERROR_SETTING);
  CHECK(attention == nullptr);
  session.finish(translation);
  REQUIRE(mulciber_begin_attention(c, translator, translation, &attention) == MULCIBER_OK);
  CHECK(mulciber_attention_layers(attention, MULCIBER_ATTENTION_CROSS) > 0);
  for (MulciberTask* task : {translation, attention}) mulciber_destroy_task(task);
  mulciber_destroy_translator(translator);
}

TEST_CASE("Deprecated functions for embeddings and pixels in C take a buffer") {
  const Session session(small_encoder());
  MulciberContext* c = session.c;
  MulciberTextEncoder* encoder = nullptr;
  REQUIRE(mulciber_load_text_encoder(c, session.device, session.model, nullptr, &encoder) ==
          MULCIBER_OK);
  const uint32_t columns = mulciber_embedding_width(encoder);
  const auto device = adopt_device(session.application.lent());
  const Destination rows(*device, uint64_t{3} * columns);
  std::fill_n(const_cast<float*>(rows.floats()), 3 * columns, 0.25f);
  const MulciberApplicationBuffer from = c_buffer(rows);
  const auto vector_of = [&](MulciberTask* task) {
    session.finish(task);
    std::vector<float> vector(mulciber_vector_width(encoder));
    REQUIRE(mulciber_vector(c, task, vector.data()) == MULCIBER_OK);
    mulciber_destroy_task(task);
    return vector;
  };
  MulciberEmbedInfo info = {sizeof(info)};
  info.embeddings = &from;
  info.tokens = 3;
  MulciberTask *task = nullptr, *same = nullptr;
  REQUIRE(mulciber_begin_embedding(c, encoder, nullptr, &info, &task) == MULCIBER_OK);
  REQUIRE(mulciber_begin_embedding_of_rows(c, encoder, &from, 3, nullptr, &same) == MULCIBER_OK);
  CHECK(vector_of(task) == vector_of(same));
  mulciber_destroy_text_encoder(encoder);

  const VkExtent2D extent = {32, 32};
  CHECK(mulciber_begin_picture_of_pixels(c, nullptr, nullptr, &extent, nullptr, &task) ==
        MULCIBER_ERROR_SETTING);
  CHECK_THAT(session.context.message(), ContainsSubstring("pixels"));
  CHECK(mulciber_begin_picture_of_pixels(c, nullptr, &from, &extent, nullptr, &task) ==
        MULCIBER_ERROR_SETTING);
  CHECK_THAT(session.context.message(), ContainsSubstring("encoder"));
  CHECK(task == nullptr);
}

#pragma GCC diagnostic pop
