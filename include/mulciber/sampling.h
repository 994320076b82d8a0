// Sampling: how the next token is chosen from the logits.
#pragma once

#include <cstdint>

namespace mulciber {

/// Sampling settings, applied in this order (the order of Hugging Face transformers' logits
/// processors):
///  1. penalties over the latest `penalty_window` tokens of the text, the prompt included. For a
///     token that occurs there n > 0 times: a positive logit is divided by repetition_penalty,
///     another multiplied by it; then presence_penalty + n * frequency_penalty is subtracted (as
///     OpenAI's interface defines them);
///  2. banned tokens get probability 0;
///  3. temperature 0: the largest logit is chosen, of equals the smallest id; the other steps are
///     skipped;
///  4. logits are divided by the temperature, p is their softmax;
///  5. top k: a token stays if fewer than k tokens are more probable;
///  6. top p: with p renormalized over the remaining tokens, a token stays if the probabilities of
///     the more probable ones add up to less than top_p;
///  7. min p: a token stays if its probability is at least min_p times the largest;
///  8. typical: with p renormalized over the remaining tokens and a = |-log p - entropy|, a token
///     stays if the probabilities of tokens with smaller a add up to less than typical_p (Meister
///     et al. 2022, arXiv:2202.00666);
///  9. one of the remaining tokens is drawn by its probability.
struct Sampling {
  float temperature = 0;         // 0: greedy, always the most probable token
  uint32_t top_k = 0;            // 0: all
  float top_p = 1;               // 1 and above: all
  float min_p = 0;               // 0: all
  float typical_p = 1;           // 1 and above: all
  float repetition_penalty = 1;  // 1: none; above 0
  float presence_penalty = 0;
  float frequency_penalty = 0;
  uint32_t penalty_window = 64;
  uint64_t seed = 0;  // equal seed, tokens and device give equal completions
  bool operator==(const Sampling&) const = default;
};

}  // namespace mulciber
