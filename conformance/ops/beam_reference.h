// One step of beam search, as transformers' generate does it, on the words of the state.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/ops/search.h"

namespace mulciber::conformance {

/// A run of words of the state that compare alike: exactly (u32) or within the tolerance (f32).
struct BeamField {
  DataType type;
  uint64_t first, count;  // words of control
};
std::vector<BeamField> beam_fields(const BeamStateLayout& layout);

/// candidates: (rows, k, 2) words. control: the whole tensor, changed in place. Scores of finished
/// hypotheses and the decisions on them are taken in double precision; running sums are f32 by definition.
void beam_step_reference(const BeamStateLayout& layout, std::span<const double> candidates, uint32_t k,
                         std::vector<uint32_t>& control);

}  // namespace mulciber::conformance
