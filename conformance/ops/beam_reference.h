// One step of beam search, as transformers' generate does it, on the words of the state.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ops/search.h"

namespace mulciber::conformance {

/// A word of the state that holds a score of a finished hypothesis, and how far that may be off.
/// (All other words must be met exactly: sums of log probabilities are f32 by definition.)
struct BeamScore {
  uint64_t word;
  double error;
};
std::vector<BeamScore> beam_scores(const BeamStateLayout& layout, const ControlWords& control);

/// candidates: (rows, k, 2) words. control: the whole tensor, changed in place. Scores of finished
/// hypotheses and the decisions on them are taken in double precision; running sums are f32 by
/// definition.
void beam_step_reference(const BeamStateLayout& layout, std::span<const double> candidates,
                         uint32_t k, ControlWords& control);

}  // namespace mulciber::conformance
