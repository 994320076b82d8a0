// Perplexity of a language model on a text, as llama.cpp measures it.
#pragma once

#include <functional>
#include <optional>
#include <span>

#include "models/generation/token_scorer.h"

namespace mulciber {

struct Perplexity {
  double value = 0, error = 0;  // exp of the mean, and its standard error
  uint64_t tokens = 0;          // scored tokens
  uint32_t chunks = 0;
};

/// Measures as llama.cpp's llama-perplexity does: the ids are cut into chunks of `context`, and
/// what is left over is ignored; in each chunk the tokens behind the first half are scored given
/// the tokens before them in the chunk. `bos`, if given, replaces the first id of every chunk.
/// most_chunks: 0: all. progress: returns false to end early. Throws ModelError when the ids do not
/// fill two chunks, as llama-perplexity does.
Perplexity perplexity(
    TokenScorer& scorer, std::span<const uint32_t> ids, uint32_t context,
    std::optional<uint32_t> bos, uint32_t most_chunks,
    const std::function<bool(uint32_t done, uint32_t all, double value)>& progress);

}  // namespace mulciber
