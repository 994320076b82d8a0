// Log probabilities of tokens, from logits.
#pragma once

#include <span>
#include <vector>

#include "mulciber/batch_generator.h"

namespace mulciber {

struct TokenProbabilities {
  float chosen = 0;
  std::vector<TokenProbability> likeliest;  // the largest first, of equals the smallest id
};

/// The log-softmax of `logits`, in double precision, of `chosen` and of the `count` likeliest ids.
TokenProbabilities token_probabilities(std::span<const float> logits, uint32_t chosen,
                                       uint32_t count);

}  // namespace mulciber
