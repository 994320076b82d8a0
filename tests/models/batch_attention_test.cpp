// The attention of a text that BatchGenerator computes beside texts that grow.
#include <atomic>
#include <cmath>

#include "mulciber/batch_generator.h"
#include "mulciber/error.h"
#include "tests/batch_requests.h"
#include "tests/model_error.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

std::vector<uint32_t> all_ids(const Generation& generation) {
  std::vector<uint32_t> ids = generation.prompt_ids;
  ids.insert(ids.end(), generation.ids.begin(), generation.ids.end());
  return ids;
}

}  // namespace

TEST_CASE("The attention of a batch's text is that of a generator") {
  TextGenerator generator(shared_handle(), small_model(), {.context = 96});
  const Generation made =
      generator.generate("The red hammer and the", {.max_new_tokens = 9, .attention = true});
  REQUIRE(made.attention);
  const TokenAttention& wanted = *made.attention;
  BatchGenerator batch = batch_of(2);
  const std::vector<uint32_t> ids = all_ids(made);

  const auto found = batch.attention(ids);
  REQUIRE(found);
  CHECK(found->layers == wanted.layers);
  CHECK(found->heads == wanted.heads);
  CHECK(found->length == wanted.length);
  CHECK(found->tokens == wanted.tokens);
  CHECK(found->windows == wanted.windows);
  CHECK(found->weights == wanted.weights);

  const size_t map = size_t{wanted.length} * wanted.length, layer = wanted.heads * map;
  for (uint32_t i = 0; i < wanted.layers; ++i) {
    const auto one = batch.attention(ids, {.layer = i});
    REQUIRE(one);
    CHECK(one->layers == 1);
    CHECK(one->windows == std::vector{wanted.windows[i]});
    CHECK(std::equal(one->weights.begin(), one->weights.end(),
                     wanted.weights.begin() + static_cast<std::ptrdiff_t>(i * layer),
                     wanted.weights.begin() + static_cast<std::ptrdiff_t>((i + 1) * layer)));
  }

  const auto mean = batch.attention(ids, {.mean = true});
  REQUIRE(mean);
  CHECK(mean->heads == 1);
  REQUIRE(mean->weights.size() == wanted.layers * map);
  double most = 0;
  for (size_t i = 0; i < mean->weights.size(); ++i) {
    double sum = 0;
    for (uint32_t head = 0; head < wanted.heads; ++head)
      sum += wanted.weights[i / map * layer + head * map + i % map];
    most = std::max(most, std::abs(sum / wanted.heads - mean->weights[i]));
  }
  CHECK(most < 1e-6);
}

TEST_CASE("Texts grow while the attention of another is computed, and none is changed") {
  BatchRequest request;
  request.prompt = "The red hammer and the";
  request.max_new_tokens = 40;
  request.ignore_end = true;
  const auto grown = [&](BatchGenerator& batch, bool with_attention) {
    Told told;
    submit(batch, request, told);
    REQUIRE(batch.step());
    size_t meanwhile = 0;
    if (with_attention) {
      const std::vector<uint32_t> ids = batch.tokens("A blue bird sits on the small house");
      const size_t before = told.ids.size();
      REQUIRE(batch.attention(ids, {.between = [&] { batch.step(); }}));
      meanwhile = told.ids.size() - before;
    }
    while (batch.step()) {
    }
    REQUIRE(told.end);
    return std::pair(told.ids, meanwhile);
  };
  BatchGenerator batch = batch_of(2);
  const auto [alone, none] = grown(batch, false);
  const auto [beside, meanwhile] = grown(batch, true);
  CHECK(none == 0);
  CHECK(meanwhile > 0);
  CHECK(alone == beside);
}

TEST_CASE("Attention that nobody wants any more ends, and what cannot be is refused") {
  BatchGenerator batch = batch_of(1);
  const std::vector<uint32_t> ids = batch.tokens("The red hammer");
  const std::atomic<bool> cancel{true};
  CHECK_FALSE(batch.attention(ids, {.cancel = &cancel}));
  CHECK(batch.attention(ids));
  CHECK_THAT(model_error([&] { batch.attention({}); }).value_or(""),
             ContainsSubstring("no tokens"));
  const std::vector<uint32_t> many(97, ids.front());
  CHECK_THAT(model_error([&] { batch.attention(many); }).value_or(""),
             ContainsSubstring("97 tokens") && ContainsSubstring("context is 96"));
  const std::vector<uint32_t> wrong = {ids.front(), 1u << 30};
  CHECK_THAT(model_error([&] { batch.attention(wrong); }).value_or(""),
             ContainsSubstring("the model's are"));
  CHECK_THROWS_AS(batch.attention(ids, {.layer = 99}), SettingError);
}
