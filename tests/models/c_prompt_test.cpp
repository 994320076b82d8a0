// Prompts in C: conversations, tokens and images are those of C++.
#include <memory>
#include <string>
#include <vector>

#include "tests/c_generation.h"
#include "tests/catch.h"
#include "tests/small_decoder.h"

#include "mulciber/c/prompt.h"
#include "mulciber/image.h"
#include "mulciber/mulciber_c.h"
#include "mulciber/prompt_images.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

std::string seeing_model() { return (data_dir() / "vision_language/llava").string(); }

Image small_image() { return read_image((data_dir() / "vision_language/small.png").string()); }

MulciberImage c_pixels(const Image& image) {
  MulciberImage pixels = {sizeof(pixels), image.width, image.height, image.rgb.data(), nullptr};
  return pixels;
}

}  // namespace

TEST_CASE("Prompts of conversations in C are those of C++") {
  TwinGenerators twins(seeing_model(), load_with_context(64), {.context = 64});
  MulciberChatMessage messages[3] = {{sizeof(messages[0]), 2, "user", "What is on these?"},
                                     {sizeof(messages[0]), 0, "assistant", "A red hammer."},
                                     {sizeof(messages[0]), 0, "user", "And which is older?"}};
  std::vector<ChatMessage> same = {{"user", "What is on these?"},
                                   {"assistant", "A red hammer."},
                                   {"user", "And which is older?"}};
  same[0].images = 2;
  CResult result;
  const char* prompt = nullptr;
  REQUIRE(mulciber_chat_prompt(twins.c, twins.generator, 3, messages, &result.handle, &prompt) ==
          MULCIBER_OK);
  REQUIRE(prompt);
  CHECK(prompt == twins.same.chat_prompt(same));
  CHECK_THAT(prompt, ContainsSubstring("<image>\n<image>\nWhat is on these?"));

  CResult none;
  for (const char* MulciberChatMessage::*text :
       {&MulciberChatMessage::role, &MulciberChatMessage::content}) {
    MulciberChatMessage wrong = messages[0];
    wrong.*text = nullptr;
    CHECK_THAT(twins.refused(mulciber_chat_prompt(twins.c, twins.generator, 1, &wrong, &none.handle,
                                                  &prompt)),
               ContainsSubstring(": is NULL"));
    CHECK(prompt == nullptr);
  }
  CHECK_THAT(twins.refused(
                 mulciber_chat_prompt(twins.c, twins.generator, 1, nullptr, &none.handle, &prompt)),
             ContainsSubstring("MulciberChatMessage: is NULL"));
  CHECK(none.handle == nullptr);

  // A base model has no template.
  TwinGenerators base(small_decoder().string(), load_with_context(32), {.context = 32});
  REQUIRE(mulciber_chat_prompt(base.c, base.generator, 3, messages, &none.handle, &prompt) ==
          MULCIBER_OK);
  CHECK(prompt == nullptr);
}

TEST_CASE("Tokens and their texts in C are those of C++") {
  TwinGenerators twins(small_decoder().string(), load_with_context(32), {.context = 32});
  const MulciberGenerator* g = twins.generator;
  MulciberGenerateInfo info = {sizeof(info)};
  std::vector<size_t> counts;
  for (const bool special : {true, false}) {
    for (const bool literal : {false, true}) {
      info.no_special = !special;
      info.literal_special = literal;
      CResult result;
      uint32_t count = 0;
      const uint32_t* ids = nullptr;
      REQUIRE(mulciber_tokenize(twins.c, g, "The <eos> hammer", &info, &result.handle, &count,
                                &ids) == MULCIBER_OK);
      CHECK(list_of(ids, count) ==
            twins.same.tokens("The <eos> hammer",
                              {.add_special = special, .parse_special = !literal}));
      counts.push_back(count);
    }
  }
  CHECK(counts[0] == counts[2] + 1);
  CHECK(counts[1] > counts[0]);
  CResult nothing;
  uint32_t count = 7;
  const uint32_t* ids = nullptr;
  info.no_special = 1;
  REQUIRE(mulciber_tokenize(twins.c, g, "", &info, &nothing.handle, &count, &ids) == MULCIBER_OK);
  CHECK(count == 0);

  const std::vector<uint32_t> tokens = twins.same.tokens("The red hammer");
  CResult text, piece, empty;
  const char* found = nullptr;
  REQUIRE(mulciber_detokenize(twins.c, g, static_cast<uint32_t>(tokens.size()), tokens.data(),
                              &text.handle, &found) == MULCIBER_OK);
  CHECK(std::string(found) == "The red hammer");
  REQUIRE(mulciber_token_text(twins.c, g, tokens[1], &piece.handle, &found) == MULCIBER_OK);
  CHECK(found == twins.same.token_text(tokens[1]));
  REQUIRE(mulciber_detokenize(twins.c, g, 0, nullptr, &empty.handle, &found) == MULCIBER_OK);
  CHECK(std::string(found).empty());

  CResult none;
  const uint32_t beyond = mulciber_vocabulary(g);
  CHECK_THAT(twins.failed(mulciber_token_text(twins.c, g, beyond, &none.handle, &found),
                          MULCIBER_ERROR_MODEL),
             ContainsSubstring("the model's are below"));
  CHECK(found == nullptr);
  CHECK(mulciber_detokenize(twins.c, g, 1, &beyond, &none.handle, &found) == MULCIBER_ERROR_MODEL);
  CHECK_THAT(twins.refused(mulciber_detokenize(twins.c, g, 1, nullptr, &none.handle, &found)),
             ContainsSubstring("ids: is NULL"));
  CHECK_THAT(
      twins.refused(mulciber_tokenize(twins.c, g, nullptr, nullptr, &none.handle, &count, &ids)),
      ContainsSubstring("prompt: is NULL"));
  CHECK_THAT(
      twins.refused(mulciber_tokenize(twins.c, g, "The", nullptr, &none.handle, nullptr, &ids)),
      ContainsSubstring("count: is NULL"));
  info.prompt_ids = &beyond;
  info.prompt_id_count = 1;
  CHECK_THAT(twins.refused(mulciber_tokenize(twins.c, g, "The", &info, &none.handle, &count, &ids)),
             ContainsSubstring("prompt_ids: is given to mulciber_tokenize"));
  CHECK(none.handle == nullptr);
}

TEST_CASE("Images of a prompt in C are those of C++") {
  TwinGenerators twins(seeing_model(), load_with_context(96), {.context = 96});
  const Image image = small_image();
  MulciberImage pixels = c_pixels(image);
  MulciberPreparedImage* prepared = nullptr;
  REQUIRE(mulciber_prepare_image(twins.c, twins.model, &pixels, &prepared) == MULCIBER_OK);
  const auto files = open_model(seeing_model());
  const auto same = prepare_image(*files, image);
  CHECK(mulciber_image_tokens(prepared) == embedded_tokens(*same));
  CHECK(mulciber_image_tokens(prepared) > 0);
  CResult named;
  const char* placeholder = nullptr;
  REQUIRE(mulciber_image_placeholder(twins.c, twins.model, &named.handle, &placeholder) ==
          MULCIBER_OK);
  CHECK(std::string(placeholder) == "<image>");

  MulciberGenerateInfo info = short_info(4);
  const MulciberPreparedImage* const images[] = {prepared};
  info.images = images;
  info.image_count = 1;
  info.log_probabilities = 1;
  GenerateOptions options = {.max_new_tokens = 4, .ignore_end = true, .log_probabilities = 0};
  options.images = {same};
  const char* const prompt = "USER: <image>\nWhat is this? ASSISTANT:";
  CResult result, tokens, by_ids;
  const MulciberCompletion* found = nullptr;
  REQUIRE(mulciber_generate(twins.c, twins.generator, prompt, &info, &result.handle, &found) ==
          MULCIBER_OK);
  const Generation expected = twins.same.generate(prompt, options);
  check_same_completion(found, expected, twins.same);
  MulciberGeneratorStatistics statistics = {sizeof(statistics)};
  REQUIRE(mulciber_generator_statistics(twins.c, twins.generator, &statistics) == MULCIBER_OK);
  CHECK(statistics.images == twins.same.statistics().images);
  CHECK(statistics.images == 1);
  uint32_t count = 0;
  const uint32_t* ids = nullptr;
  REQUIRE(mulciber_tokenize(twins.c, twins.generator, prompt, &info, &tokens.handle, &count,
                            &ids) == MULCIBER_OK);
  CHECK(list_of(ids, count) == expected.prompt_ids);
  info.prompt_ids = ids;
  info.prompt_id_count = count;
  options.prompt_ids = expected.prompt_ids;
  REQUIRE(mulciber_generate(twins.c, twins.generator, nullptr, &info, &by_ids.handle, &found) ==
          MULCIBER_OK);
  check_same_completion(found, twins.same.generate("", options), twins.same);

  // What is no image, or no model for one.
  MulciberPreparedImage* none = prepared;
  MulciberImage wrong = pixels;
  wrong.rgb = nullptr;
  CHECK_THAT(twins.refused(mulciber_prepare_image(twins.c, twins.model, &wrong, &none)),
             ContainsSubstring("rgb: is NULL"));
  CHECK(none == nullptr);
  wrong = pixels;
  wrong.width = 0;
  CHECK_THAT(twins.refused(mulciber_prepare_image(twins.c, twins.model, &wrong, &none)),
             ContainsSubstring("image: has 0 x"));
  wrong = pixels;
  const MulciberApplicationBuffer buffer = {sizeof(buffer)};
  wrong.pixels = &buffer;
  CHECK_THAT(twins.refused(mulciber_prepare_image(twins.c, twins.model, &wrong, &none)),
             ContainsSubstring("MulciberImage::pixels"));
  CHECK_THAT(twins.refused(mulciber_prepare_image(twins.c, nullptr, &pixels, &none)),
             ContainsSubstring("model: is NULL"));
  const SharedSession blind(small_decoder().string());
  CHECK_THAT(blind.failed(mulciber_prepare_image(blind.c, blind.model, &pixels, &none),
                          MULCIBER_ERROR_MODEL),
             ContainsSubstring("not one that answers about images"));
  CResult unnamed;
  REQUIRE(mulciber_image_placeholder(blind.c, blind.model, &unnamed.handle, &placeholder) ==
          MULCIBER_OK);
  CHECK(std::string(placeholder).empty());
  CHECK(mulciber_image_tokens(nullptr) == 0);
  mulciber_destroy_prepared_image(nullptr);
  mulciber_destroy_prepared_image(prepared);
}
