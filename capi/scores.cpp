// C functions for scores and hidden states of texts.
#include "mulciber/c/scores.h"

#include "capi/completions.h"
#include "capi/handles.h"
#include "capi/result.h"
#include "capi/structures.h"
#include "capi/text_scoring.h"

namespace mulciber::c {
namespace {

/// A text's scores as a MulciberTextScore has them.
struct ShownScore {
  std::vector<uint32_t> ids;
  std::vector<double> log_probabilities;
  std::vector<uint32_t> ranks, likeliest_ids;
  std::vector<float> likeliest_log_probabilities;
};

/// Storage of a call's scores.
struct ShownScores {
  std::vector<ShownScore> each;
  std::vector<MulciberTextScore> list;
};

MulciberTextScore shown_score(const TextScore& score, bool ranks, ShownScore& to) {
  to.ids = score.ids;
  for (const TokenScore& token : score.tokens) {
    to.log_probabilities.push_back(token.log_probability);
    to.ranks.push_back(token.rank);
    for (const TokenProbability& one : token.likeliest) {
      to.likeliest_ids.push_back(one.id);
      to.likeliest_log_probabilities.push_back(one.log_probability);
    }
  }
  const size_t likeliest = score.tokens.empty() ? 0 : score.tokens.front().likeliest.size();
  return {.size = sizeof(MulciberTextScore),
          .complete = score.complete,
          .id_count = static_cast<uint32_t>(to.ids.size()),
          .token_count = static_cast<uint32_t>(score.tokens.size()),
          .ids = to.ids.data(),
          .log_probabilities = to.log_probabilities.data(),
          .ranks = ranks ? to.ranks.data() : nullptr,
          .likeliest = static_cast<uint32_t>(likeliest),
          .likeliest_ids = to.likeliest_ids.data(),
          .likeliest_log_probabilities = to.likeliest_log_probabilities.data(),
          .sum = score.sum,
          .mean = score.mean()};
}

/// Storage of hidden states.
struct ShownStates {
  HiddenStates found;
  MulciberHiddenStates view = {};
};

}  // namespace

std::vector<ScoreInput> score_inputs(uint32_t count, const MulciberScoreInput* list) {
  std::vector<ScoreInput> inputs;
  for_each_structure(
      count, list, "inputs", "MulciberScoreInput", [&](const MulciberScoreInput& input) {
        ScoreInput& to = inputs.emplace_back();
        if (input.id_count == 0) {
          if (input.context) to.context = input.context;
          to.text = &given_to(input.text, "text");
          return;
        }
        if (input.text || input.context)
          throw SettingError("MulciberScoreInput", "has a text and ids", "give NULL for the texts");
        const uint32_t* const ids = &given_to(input.ids, "ids");
        to.ids.assign(ids, ids + input.id_count);
      });
  return inputs;
}

ScoreOptions score_options(const MulciberScoreInfo& info,
                           const std::optional<std::vector<AdapterScale>>& adapters) {
  ScoreOptions options = {
      .add_special = info.no_special == 0,
      .parse_special = info.parse_special != 0,
      .likeliest = info.likeliest,
      .ranks = info.ranks != 0,
      .adapters = selected_adapters(info.no_adapters, info.adapter_count, info.adapters, adapters),
      .cancel = cancel_flag(info.cancel),
      .progress = {}};
  if (info.on_progress)
    options.progress = [call = info.on_progress, user = info.user](size_t done, size_t total) {
      call(user, static_cast<uint32_t>(done), static_cast<uint32_t>(total));
    };
  return options;
}

void give_scores(TextScores found, bool ranks, MulciberResult** result,
                 const MulciberTextScore** scores, MulciberScoreStatistics* statistics) {
  auto shown = std::make_shared<ShownScores>();
  shown->each.resize(found.texts.size());
  for (size_t i = 0; i < found.texts.size(); ++i)
    shown->list.push_back(shown_score(found.texts[i], ranks, shown->each[i]));
  if (statistics)
    give(statistics, "MulciberScoreStatistics", [&](MulciberScoreStatistics& to) {
      to.read_tokens = found.statistics.read_tokens;
      to.reused_tokens = found.statistics.reused_tokens;
      to.scored_tokens = found.statistics.scored_tokens;
      to.build_seconds = found.statistics.build_seconds;
      to.total_seconds = found.statistics.total_seconds;
    });
  const MulciberTextScore* const list = shown->list.data();
  *result = new MulciberResult{std::move(shown)};
  *scores = list;
}

}  // namespace mulciber::c

using namespace mulciber;
using namespace mulciber::c;

MulciberStatus mulciber_score(MulciberContext* context, MulciberGenerator* generator,
                              uint32_t count, const MulciberScoreInput* inputs,
                              const MulciberScoreInfo* info, MulciberResult** result,
                              const MulciberTextScore** scores,
                              MulciberScoreStatistics* statistics) {
  return guarded(context, [&] {
    given_to(result, "result") = nullptr;
    given_to(scores, "scores") = nullptr;
    MulciberGenerator& by = given_to(generator, "generator");
    score_texts(by.generator, by.adapters, count, inputs,
                optional_of_any_version(info, "MulciberScoreInfo"), result, scores, statistics);
  });
}

MulciberStatus mulciber_hidden_states(MulciberContext* context, MulciberGenerator* generator,
                                      const char* text, uint32_t layer_count,
                                      const uint32_t* layers, const MulciberScoreInfo* from,
                                      MulciberResult** result,
                                      const MulciberHiddenStates** states) {
  return guarded(context, [&] {
    given_to(result, "result") = nullptr;
    given_to(states, "states") = nullptr;
    MulciberGenerator& by = given_to(generator, "generator");
    given_to(text, "text");
    const auto info = optional_of_any_version(from, "MulciberScoreInfo");
    std::vector<uint32_t> wanted;
    for (uint32_t i = 0; i < layer_count; ++i) wanted.push_back(element_of(layers, i, "layers"));
    auto shown = std::make_shared<ShownStates>();
    shown->found = by.generator.hidden_states(text, wanted, score_options(info, by.adapters));
    const HiddenStates& found = shown->found;
    shown->view = {.size = sizeof(MulciberHiddenStates),
                   .layer_count = layer_count,
                   .id_count = static_cast<uint32_t>(found.ids.size()),
                   .width = found.width,
                   .ids = found.ids.data(),
                   .values = found.values.data()};
    const MulciberHiddenStates* const view = &shown->view;
    *result = new MulciberResult{std::move(shown)};
    *states = view;
  });
}
