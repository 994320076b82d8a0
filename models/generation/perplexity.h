// How surprised a language model is by a text: the perplexity that people compare.
#pragma once

#include <functional>
#include <optional>
#include <span>

#include "models/generation/token_scorer.h"

namespace mulciber {

struct Perplexity {
  double value = 0, error = 0;  // exp of the mean, and its standard error
  uint64_t tokens = 0;          // that were scored
  uint32_t chunks = 0;
};

/// As llama.cpp's llama-perplexity measures: the ids are cut into chunks of `context`, what is left
/// over is not looked at; in each chunk the tokens behind the first half are scored on what stands
/// before them in the chunk. With `bos` it takes the place of every chunk's first id. most_chunks:
/// 0: all. progress returns false to end early. Throws ModelError when the ids do not fill two
/// chunks, as there.
Perplexity perplexity(
    TokenScorer& scorer, std::span<const uint32_t> ids, uint32_t context,
    std::optional<uint32_t> bos, uint32_t most_chunks,
    const std::function<bool(uint32_t done, uint32_t all, double value)>& progress);

}  // namespace mulciber
