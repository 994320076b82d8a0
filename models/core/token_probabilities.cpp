#include "models/core/token_probabilities.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace mulciber {
namespace {

/// Ids of the `count` largest logits; equal logits in the order of their ids.
std::vector<uint32_t> largest_ids(std::span<const float> logits, uint32_t count) {
  std::vector<uint32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto end = ids.begin() + std::min<std::ptrdiff_t>(count, std::ssize(ids));
  std::partial_sort(ids.begin(), end, ids.end(), [&](uint32_t a, uint32_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  });
  ids.erase(end, ids.end());
  return ids;
}

}  // namespace

TokenProbabilities token_probabilities(std::span<const float> logits, uint32_t chosen,
                                       uint32_t count) {
  const double largest = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - largest);
  const double log_sum = largest + std::log(sum);
  const auto log_probability = [&](uint32_t id) {
    return static_cast<float>(logits[id] - log_sum);
  };
  TokenProbabilities result = {.chosen = log_probability(chosen), .likeliest = {}};
  if (count == 0) return result;
  for (const uint32_t id : largest_ids(logits, count))
    result.likeliest.push_back({.id = id, .log_probability = log_probability(id)});
  return result;
}

void add_details(TokenScore& token, std::span<const float> logits, uint32_t count) {
  const float own = logits[token.id];
  for (uint32_t id = 0; id < logits.size(); ++id)
    token.rank += logits[id] > own || (logits[id] == own && id < token.id);
  if (count == 0) return;
  const double log_sum = own - token.log_probability;
  for (const uint32_t id : largest_ids(logits, count))
    token.likeliest.push_back({id, static_cast<float>(logits[id] - log_sum)});
}

}  // namespace mulciber
