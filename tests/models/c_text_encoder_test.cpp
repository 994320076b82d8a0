// Text embeddings in C, at once and in slices: they are those of C++.
#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "runtime/device.h"
#include "tests/c_destination.h"
#include "tests/c_session.h"
#include "tests/catch.h"
#include "tests/small_decoder.h"
#include "tests/support.h"
#include "tests/vulkan_application.h"

#include "mulciber/embedding.h"
#include "mulciber/mulciber_c.h"
#include "mulciber/text_encoder.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("Vectors of texts in C are those in C++") {
  const std::string folder = (source_dir() / "tests/data/roberta_cls").string();
  const Session session(folder);
  MulciberContext* c = session.c;
  MulciberTextEncoder* encoder = nullptr;
  REQUIRE(mulciber_load_text_encoder(c, session.device, session.model, nullptr, &encoder) ==
          MULCIBER_OK);
  const uint32_t width = mulciber_vector_width(encoder);
  const char* texts[] = {"A red house.", "Two dogs run.", ""};
  std::vector<float> vectors(3 * width);
  MulciberEmbedInfo info = {sizeof(info)};
  info.prompt = "say: ";
  REQUIRE(mulciber_embed(c, encoder, 3, texts, &info, vectors.data()) == MULCIBER_OK);
  TextEncoder same(adopt_device(session.application.lent()), folder);
  const std::vector<std::string> copies(std::begin(texts), std::end(texts));
  std::vector<float> expected;
  for (const TextVector& vector : same.embed(copies, {.prompt = "say: "}))
    expected.insert(expected.end(), vector.values.begin(), vector.values.end());
  CHECK(vectors == expected);
  CHECK(mulciber_embed(c, encoder, 3, texts, nullptr, vectors.data()) == MULCIBER_OK);
  CHECK(vectors != expected);

  texts[1] = nullptr;
  CHECK(mulciber_embed(c, encoder, 3, texts, nullptr, vectors.data()) == MULCIBER_ERROR_SETTING);
  std::string endless;
  for (int i = 0; i < 2000; ++i) endless += "word ";
  texts[1] = endless.c_str();
  CHECK(mulciber_embed(c, encoder, 3, texts, nullptr, vectors.data()) == MULCIBER_OK);
  info.refuse_long = VK_TRUE;
  CHECK(mulciber_embed(c, encoder, 3, texts, &info, vectors.data()) == MULCIBER_ERROR_MODEL);
  CHECK_THAT(session.context.message(), ContainsSubstring("text 2 of 3"));
  mulciber_destroy_text_encoder(encoder);
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
  const auto device = adopt_device(session.application.lent());
  CHECK(vector == TextEncoder(device, small_encoder()).embed("A red house.").values);

  const uint32_t tokens = mulciber_embedding_tokens(task);
  const Destination alone(*device, width), states(*device, uint64_t{tokens} * width);
  const MulciberApplicationBuffer to_vector = c_buffer(alone), to_states = c_buffer(states);
  ApplicationCommands commands(session.application);
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
  MulciberApplicationBuffer from = c_buffer(rows);
  MulciberEmbedInfo info = {sizeof(info)};
  info.embeddings = &from;
  info.tokens = 3;
  REQUIRE(mulciber_begin_embedding(c, encoder, nullptr, &info, &task) == MULCIBER_OK);
  session.finish(task);
  REQUIRE(mulciber_vector(c, task, vector.data()) == MULCIBER_OK);
  mulciber_destroy_task(task);
  TextEncoder same(device, small_encoder());
  EmbeddingTask twin(same, rows.buffer, 3);
  finish(twin);
  CHECK(vector == twin.result().values);
  from.bytes -= 4;
  CHECK(mulciber_begin_embedding(c, encoder, nullptr, &info, &task) == MULCIBER_ERROR_SETTING);
  CHECK(mulciber_begin_embedding(c, encoder, "A text.", &info, &task) == MULCIBER_ERROR_SETTING);
  CHECK(task == nullptr);
  const char* const texts[] = {"A text."};
  CHECK(mulciber_embed(c, encoder, 1, texts, &info, vector.data()) == MULCIBER_ERROR_SETTING);
  mulciber_destroy_text_encoder(encoder);
}
