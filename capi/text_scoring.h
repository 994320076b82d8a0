// Calls that score texts, for generators and batch generators alike.
#pragma once

#include <optional>
#include <vector>

#include "mulciber/c/scores.h"
#include "mulciber/text_generator.h"

namespace mulciber::c {

std::vector<ScoreInput> score_inputs(uint32_t count, const MulciberScoreInput* list);

/// adapters: those of a call that selects none.
ScoreOptions score_options(const MulciberScoreInfo& info,
                           const std::optional<std::vector<AdapterScale>>& adapters);

/// Gives scores as a call's result. ranks: they were computed. statistics: may be null.
void give_scores(TextScores found, bool ranks, MulciberResult** result,
                 const MulciberTextScore** scores, MulciberScoreStatistics* statistics);

/// Scores texts by a TextGenerator or BatchGenerator.
template <typename Generator>
void score_texts(Generator& by, const std::optional<std::vector<AdapterScale>>& adapters,
                 uint32_t count, const MulciberScoreInput* inputs, const MulciberScoreInfo& info,
                 MulciberResult** result, const MulciberTextScore** scores,
                 MulciberScoreStatistics* statistics) {
  give_scores(by.score(score_inputs(count, inputs), score_options(info, adapters)), info.ranks != 0,
              result, scores, statistics);
}

}  // namespace mulciber::c
