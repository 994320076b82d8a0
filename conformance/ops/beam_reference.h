// One step of beam search on the words of the state, like transformers' generate().
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ops/search.h"

namespace mulciber::conformance {

/// A word of the state that holds a finished hypothesis' score, and its bound. (All other words
/// must be exact: sums of log probabilities are f32 by definition.)
struct BeamScore {
  uint64_t word;
  double error;
};
std::vector<BeamScore> beam_scores(const BeamStateLayout& layout, const ControlWords& control);

/// candidates: (rows, k, 2) words. control: the whole tensor, changed in place. Scores of finished
/// hypotheses and decisions about them use double precision; running sums are f32 by definition.
void beam_step_reference(const BeamStateLayout& layout, std::span<const double> candidates,
                         uint32_t k, ControlWords& control);

}  // namespace mulciber::conformance
