// Scores of given texts by a TextGenerator or a BatchGenerator.
#pragma once

#include <optional>
#include <span>

#include "models/generation/shared_generator.h"
#include "models/generation/token_scorer.h"

namespace mulciber {

/// A generator that scores texts, the tokens of its longest text, and where its scorer is kept.
struct TextScoring {
  const SharedGenerator& generator;
  uint32_t context;
  std::optional<TokenScorer>& scorer;
};

/// The scorer, with room for a text of `tokens` tokens. Throws DeviceError where it does not fit.
TokenScorer& scorer_of(const TextScoring& by, size_t tokens);

/// Scores as TextGenerator::score().
TextScores score_texts(const TextScoring& by, std::span<const ScoreInput> inputs,
                       const ScoreOptions& options);

}  // namespace mulciber
