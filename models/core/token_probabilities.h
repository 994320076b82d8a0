// Log probabilities of tokens, from logits.
#pragma once

#include <span>
#include <vector>

#include "mulciber/text_scores.h"

namespace mulciber {

struct TokenProbabilities {
  float chosen = 0;
  std::vector<TokenProbability> likeliest;  // the largest first, of equals the smallest id
};

/// The log-softmax of `logits`, in double precision, of `chosen` and of the `count` likeliest ids.
TokenProbabilities token_probabilities(std::span<const float> logits, uint32_t chosen,
                                       uint32_t count);

/// Rank and likeliest ids of a token whose log probability is known, from its row of logits.
void add_details(TokenScore& token, std::span<const float> logits, uint32_t count);

}  // namespace mulciber
