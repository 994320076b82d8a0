#include "models/generation/perplexity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "mulciber/error.h"

namespace mulciber {

Perplexity perplexity(
    TokenScorer& scorer, std::span<const uint32_t> ids, uint32_t context,
    std::optional<uint32_t> bos, uint32_t most_chunks,
    const std::function<bool(uint32_t done, uint32_t all, double value)>& progress) {
  if (ids.size() < 2ull * context)
    throw ModelError(
        "text",
        fmt::format("has {} tokens, and two chunks of {} are the least", ids.size(), context),
        "give a longer text, or a smaller context");
  const auto all = static_cast<uint32_t>(
      std::min<uint64_t>(ids.size() / context, most_chunks > 0 ? most_chunks : ids.size()));
  Perplexity result;
  double sum = 0, squares = 0;
  for (uint32_t chunk = 0; chunk < all; ++chunk) {
    const auto begin = ids.begin() + static_cast<std::ptrdiff_t>(chunk) * context;
    std::vector<uint32_t> own(begin, begin + context);
    if (bos) own[0] = *bos;
    // llama-perplexity scores what the tokens from number context / 2 on predict.
    for (const double score : scorer.score(own, context / 2 + 1)) {
      sum -= score;
      squares += score * score;
      ++result.tokens;
    }
    ++result.chunks;
    const double n = static_cast<double>(result.tokens), mean = sum / n;
    result.value = std::exp(mean);
    const double variance = squares / n - mean * mean;
    result.error = variance > 0 && n > 1 ? std::sqrt(variance / (n - 1)) * result.value : 0;
    if (progress && !progress(result.chunks, all, result.value)) break;
  }
  return result;
}

}  // namespace mulciber
