// How the next token of a text is chosen.
#pragma once

#include <cstdint>

namespace mulciber {

/// What is done, in this order (that of Hugging Face transformers' logits processors):
///  1. penalties over the latest `penalty_window` tokens of the text, the prompt included. For a
///     token that stands there n > 0 times: a positive logit is divided by repetition_penalty,
///     another multiplied with it; then presence_penalty + n * frequency_penalty is taken off (as
///     OpenAI's interface defines them);
///  2. banned tokens are impossible;
///  3. temperature 0: the largest logit, of equals the smallest id, and nothing of what follows;
///  4. logits are divided by the temperature, p is their softmax;
///  5. top k: tokens of which fewer than k are more probable stay;
///  6. top p: of these, renormalized, tokens stay whose more probable ones add up to less than
///     top_p;
///  7. min p: tokens stay that have at least min_p times the probability of the likeliest;
///  8. typical: of these, renormalized, with a = |-log p - entropy|, tokens stay where those of
///     smaller a add up to less than typical_p (Meister et al. 2022, arXiv:2202.00666);
///  9. one of the rest is drawn by its probability.
struct Sampling {
  float temperature = 0;         // 0: always the likeliest token, exactly
  uint32_t top_k = 0;            // 0: all
  float top_p = 1;               // 1 and above: all
  float min_p = 0;               // 0: all
  float typical_p = 1;           // 1 and above: all
  float repetition_penalty = 1;  // 1: none; above 0
  float presence_penalty = 0;
  float frequency_penalty = 0;
  uint32_t penalty_window = 64;
  uint64_t seed = 0;  // the same seed, tokens and device give the same answer
  bool operator==(const Sampling&) const = default;
};

}  // namespace mulciber
