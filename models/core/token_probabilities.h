// Log probabilities of tokens, from logits.
#pragma once

#include <span>
#include <vector>

#include "mulciber/text_scores.h"

namespace mulciber {

/// Log-softmax of `logits`, in double precision, for `chosen` and for the `count` most probable
/// ids.
TokenProbabilities token_probabilities(std::span<const float> logits, uint32_t chosen,
                                       uint32_t count);

/// Sets rank and most probable ids of a token whose log probability is known, from its row of
/// logits.
void add_details(TokenScore& token, std::span<const float> logits, uint32_t count);

}  // namespace mulciber
