// Scores and hidden states in C: they are those of C++, bit for bit.
#include <string>
#include <vector>

#include "tests/c_generation.h"
#include "tests/catch.h"
#include "tests/small_decoder.h"

#include "mulciber/c/scores.h"
#include "mulciber/mulciber_c.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

TwinGenerators scoring_twins() {
  return {small_decoder().string(), load_with_context(64), {.context = 64}};
}

void check_same_score(const MulciberTextScore& found, const TextScore& expected, bool ranks) {
  REQUIRE(found.size == sizeof(found));
  CHECK((found.complete != 0) == expected.complete);
  CHECK(list_of(found.ids, found.id_count) == expected.ids);
  REQUIRE(found.token_count == expected.tokens.size());
  CHECK(found.sum == expected.sum);
  CHECK(found.mean == expected.mean());
  CHECK((found.ranks != nullptr) == (ranks && found.token_count > 0));
  for (uint32_t i = 0; i < found.token_count; ++i) {
    const TokenScore& token = expected.tokens[i];
    CHECK(found.ids[found.id_count - found.token_count + i] == token.id);
    CHECK(found.log_probabilities[i] == token.log_probability);
    if (ranks) CHECK(found.ranks[i] == token.rank);
    REQUIRE(found.likeliest == token.likeliest.size());
    for (uint32_t rank = 0; rank < found.likeliest; ++rank) {
      CHECK(found.likeliest_ids[i * found.likeliest + rank] == token.likeliest[rank].id);
      CHECK(found.likeliest_log_probabilities[i * found.likeliest + rank] ==
            token.likeliest[rank].log_probability);
    }
  }
}

}  // namespace

TEST_CASE("Scores of texts in C are those of C++") {
  TwinGenerators twins = scoring_twins();
  const std::vector<uint32_t> ids = twins.same.tokens("the old house");
  const std::vector<ScoreInput> same = {{.text = "the red hammer and the blue nails"},
                                        {.context = "the red hammer", .text = " and the nails"},
                                        {.ids = ids}};
  MulciberScoreInput inputs[3] = {{sizeof(inputs[0])}, {sizeof(inputs[0])}, {sizeof(inputs[0])}};
  inputs[0].text = same[0].text.c_str();
  inputs[1].context = same[1].context.c_str();
  inputs[1].text = same[1].text.c_str();
  inputs[2].ids = ids.data();
  inputs[2].id_count = static_cast<uint32_t>(ids.size());

  std::vector<uint32_t> progress;
  MulciberScoreInfo info = {sizeof(info)};
  info.likeliest = 3;
  info.ranks = 1;
  info.user = &progress;
  info.on_progress = [](void* user, uint32_t done, uint32_t total) {
    static_cast<std::vector<uint32_t>*>(user)->push_back(100 * done + total);
  };
  CResult result;
  const MulciberTextScore* found = nullptr;
  MulciberScoreStatistics statistics = {sizeof(statistics)};
  REQUIRE(mulciber_score(twins.c, twins.generator, 3, inputs, &info, &result.handle, &found,
                         &statistics) == MULCIBER_OK);
  const TextScores expected = twins.same.score(same, {.likeliest = 3, .ranks = true});
  for (size_t i = 0; i < 3; ++i) {
    INFO("text " << i);
    check_same_score(found[i], expected.texts[i], true);
  }
  CHECK(progress == std::vector<uint32_t>{103, 203, 303});
  CHECK(statistics.read_tokens == expected.statistics.read_tokens);
  CHECK(statistics.reused_tokens == expected.statistics.reused_tokens);
  CHECK(statistics.scored_tokens == expected.statistics.scored_tokens);

  // Without options, and with those of special tokens.
  CResult plain, special, cancelled;
  REQUIRE(mulciber_score(twins.c, twins.generator, 1, inputs, nullptr, &plain.handle, &found,
                         nullptr) == MULCIBER_OK);
  check_same_score(found[0], twins.same.score(std::span(same).first(1)).texts[0], false);
  info = {sizeof(info)};
  info.no_special = 1;
  info.parse_special = 1;
  MulciberScoreInput with_end = {sizeof(with_end)};
  with_end.text = "the<eos>";
  REQUIRE(mulciber_score(twins.c, twins.generator, 1, &with_end, &info, &special.handle, &found,
                         nullptr) == MULCIBER_OK);
  const std::vector<ScoreInput> same_end = {{.text = "the<eos>"}};
  check_same_score(
      found[0], twins.same.score(same_end, {.add_special = false, .parse_special = true}).texts[0],
      false);
  CHECK(found[0].ids[found[0].id_count - 1] == 1);

  // A call that is cancelled gives what is complete.
  MulciberCancel* cancel = nullptr;
  REQUIRE(mulciber_create_cancel(twins.c, &cancel) == MULCIBER_OK);
  info = {sizeof(info)};
  info.cancel = cancel;
  info.user = cancel;
  info.on_progress = [](void* user, uint32_t, uint32_t) {
    mulciber_request_cancel(static_cast<MulciberCancel*>(user));
  };
  REQUIRE(mulciber_score(twins.c, twins.generator, 3, inputs, &info, &cancelled.handle, &found,
                         nullptr) == MULCIBER_OK);
  CHECK(found[0].complete);
  CHECK_FALSE(found[1].complete);
  CHECK(found[1].id_count == 0);
  CHECK(found[2].token_count == 0);
  mulciber_destroy_cancel(cancel);
}

TEST_CASE("Hidden states in C are those of C++") {
  TwinGenerators twins = scoring_twins();
  const uint32_t layers[] = {0, 2, 3};
  CResult result;
  const MulciberHiddenStates* found = nullptr;
  REQUIRE(mulciber_hidden_states(twins.c, twins.generator, "the red hammer", 3, layers, nullptr,
                                 &result.handle, &found) == MULCIBER_OK);
  const HiddenStates expected = twins.same.hidden_states("the red hammer", layers);
  CHECK(found->layer_count == 3);
  CHECK(found->width == expected.width);
  CHECK(list_of(found->ids, found->id_count) == expected.ids);
  CHECK(list_of(found->values, size_t{3} * found->id_count * found->width) == expected.values);
  CResult none;
  const uint32_t beyond = 9;
  CHECK_THAT(twins.failed(mulciber_hidden_states(twins.c, twins.generator, "the", 1, &beyond,
                                                 nullptr, &none.handle, &found),
                          MULCIBER_ERROR_MODEL),
             ContainsSubstring("9 is not there"));
  CHECK(found == nullptr);
  CHECK_THAT(twins.refused(mulciber_hidden_states(twins.c, twins.generator, "the", 1, nullptr,
                                                  nullptr, &none.handle, &found)),
             ContainsSubstring("layers: is NULL"));
  CHECK_THAT(twins.refused(mulciber_hidden_states(twins.c, twins.generator, nullptr, 1, layers,
                                                  nullptr, &none.handle, &found)),
             ContainsSubstring("text: is NULL"));
  CHECK(none.handle == nullptr);
}

TEST_CASE("Wrong texts to score in C are refused by name") {
  TwinGenerators twins = scoring_twins();
  CResult none;
  const MulciberTextScore* found = nullptr;
  const auto status = [&](const MulciberScoreInput* inputs, uint32_t count = 1) {
    found = reinterpret_cast<const MulciberTextScore*>(&found);
    const MulciberStatus made = mulciber_score(twins.c, twins.generator, count, inputs, nullptr,
                                               &none.handle, &found, nullptr);
    CHECK(none.handle == nullptr);
    CHECK(found == nullptr);
    return made;
  };
  MulciberScoreInput input = {sizeof(input)};
  CHECK_THAT(twins.refused(status(&input)), ContainsSubstring("text: is NULL"));
  CHECK_THAT(twins.refused(status(nullptr)), ContainsSubstring("MulciberScoreInput: is NULL"));
  const uint32_t ids[] = {2, 5};
  input.id_count = 2;
  CHECK_THAT(twins.refused(status(&input)), ContainsSubstring("ids: is NULL"));
  input.ids = ids;
  input.text = "the";
  CHECK_THAT(twins.refused(status(&input)), ContainsSubstring("has a text and ids"));
  input = {sizeof(input)};
  input.text = "";
  CHECK_THAT(twins.failed(status(&input), MULCIBER_ERROR_MODEL),
             ContainsSubstring("text 1 of 1: has no tokens to score"));
  input.size = 4;
  CHECK_THAT(twins.refused(status(&input)), ContainsSubstring("set size to sizeof"));
  CHECK_THAT(twins.refused(mulciber_score(twins.c, twins.generator, 0, nullptr, nullptr, nullptr,
                                          &found, nullptr)),
             ContainsSubstring("result: is NULL"));
  CHECK_THAT(twins.refused(mulciber_score(twins.c, nullptr, 0, nullptr, nullptr, &none.handle,
                                          &found, nullptr)),
             ContainsSubstring("generator: is NULL"));
}
