#include "conformance/ops/sample_reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "conformance/bounds.h"

namespace mulciber::conformance {
namespace {

/// Removes the ids that are not among the first of an order. Ids of equal keys are kept or removed
/// together; they are kept where the earlier ones add up to less than `target`. Returns how far a
/// sum was from the target, as a share of it; or, if smaller, the distance of the keys on both
/// sides of the cut, times `key_weight`.
double keep_first(std::vector<double>& probabilities, const std::vector<double>& keys,
                  double target, bool counted, double key_weight = kInfinity) {
  std::vector<uint32_t> order;
  for (uint32_t id = 0; id < probabilities.size(); ++id) {
    if (probabilities[id] > 0) order.push_back(id);
  }
  std::ranges::sort(order, [&](uint32_t a, uint32_t b) { return keys[a] > keys[b]; });
  double before = 0, group = 0, margin = kInfinity;
  for (size_t i = 0; i < order.size(); ++i) {
    const bool begins = i == 0 || keys[order[i]] != keys[order[i - 1]];
    if (begins) {
      before += group;
      group = 0;
      if (i > 0) margin = std::min(margin, std::fabs(before - target) / target);
    }
    group += counted ? 1 : probabilities[order[i]];
    if (before >= target) {
      if (i > 0) margin = std::min(margin, key_weight * (keys[order[i - 1]] - keys[order[i]]));
      for (size_t j = i; j < order.size(); ++j) probabilities[order[j]] = 0;
      break;
    }
  }
  return margin;
}

void normalize(std::vector<double>& probabilities) {
  const double total = std::accumulate(probabilities.begin(), probabilities.end(), 0.0);
  for (double& p : probabilities) p /= total;
}

}  // namespace

double random_number(uint64_t seed, uint32_t step, uint32_t stream) {
  uint32_t c[4] = {step, stream, 0, 0};
  uint32_t key[2] = {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
  for (int round = 0; round < 10; ++round) {
    const uint64_t x = uint64_t{0xD2511F53} * c[0], z = uint64_t{0xCD9E8D57} * c[2];
    const uint32_t next[4] = {
        static_cast<uint32_t>(z >> 32) ^ c[1] ^ key[0], static_cast<uint32_t>(z),
        static_cast<uint32_t>(x >> 32) ^ c[3] ^ key[1], static_cast<uint32_t>(x)};
    std::copy(next, next + 4, c);
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return (static_cast<double>(c[0] >> 9) + 0.5) * 0x1p-23;
}

bool are_logits(std::span<const double> logits) {
  return std::ranges::all_of(
      logits, [](double logit) { return logit <= std::numeric_limits<float>::max(); });
}

std::vector<double> penalized(std::span<const double> logits, const Sampling& sampling,
                              std::span<const uint32_t> history, std::span<const uint32_t> banned,
                              const LogitBiases& biases, const IdMask& mask) {
  std::vector<double> result(logits.begin(), logits.end());
  std::map<uint32_t, double> times;
  const size_t window = std::min<size_t>(history.size(), sampling.penalty_window);
  for (uint32_t token : history.subspan(history.size() - window)) times[token] += 1;
  for (const auto& [token, n] : times) {
    if (token >= result.size()) continue;
    double& logit = result[token];
    logit = logit > 0 ? logit / sampling.repetition_penalty : logit * sampling.repetition_penalty;
    logit -= sampling.presence_penalty + n * sampling.frequency_penalty;
  }
  for (const auto& [id, bias] : biases) {
    if (id < result.size()) result[id] += bias;
  }
  for (uint32_t id : banned) {
    if (id < result.size()) result[id] = -kInfinity;
  }
  for (size_t id = 0; !mask.empty() && id < result.size(); ++id) {
    if ((mask[id / 32] >> (id % 32) & 1) == 0) result[id] = -kInfinity;
  }
  return result;
}

Choice choose(std::span<const double> logits, const Sampling& sampling, double u) {
  Choice choice;
  choice.margin = kInfinity;
  const auto best = std::ranges::max_element(logits);  // the first of equal ones
  choice.id = *best == -kInfinity ? 0 : static_cast<uint32_t>(best - logits.begin());
  choice.probabilities.assign(logits.size(), 0);
  if (*best == -kInfinity || sampling.temperature == 0) {
    choice.probabilities[choice.id] = 1;
    return choice;
  }
  const double largest = *best;
  std::vector<double>& p = choice.probabilities;
  const std::vector<double> keys(logits.begin(), logits.end());
  for (size_t id = 0; id < p.size(); ++id)
    p[id] = std::exp((logits[id] - largest) / sampling.temperature);
  // Counts are exact in any arithmetic, sums are not.
  if (sampling.top_k > 0) keep_first(p, keys, sampling.top_k, true);
  normalize(p);
  if (sampling.top_p < 1)
    choice.margin = std::min(choice.margin, keep_first(p, keys, sampling.top_p, false));
  if (sampling.min_p > 0) {
    const double most = *std::ranges::max_element(p);
    for (double& share : p) {
      if (share == 0) continue;
      choice.margin =
          std::min(choice.margin, std::fabs(share / most - sampling.min_p) / sampling.min_p);
      if (share < sampling.min_p * most) share = 0;
    }
  }
  normalize(p);
  if (sampling.typical_p < 1) {
    double entropy = 0;
    for (double share : p) entropy -= share > 0 ? share * std::log(share) : 0;
    std::vector<double> distances(p.size(), 0);
    for (size_t id = 0; id < p.size(); ++id) {
      if (p[id] > 0) distances[id] = -std::fabs(-std::log(p[id]) - entropy);
    }
    // Almost equal distances on both sides of the entropy may change their order.
    choice.margin = std::min(choice.margin, keep_first(p, distances, sampling.typical_p, false, 2));
    normalize(p);
  }
  double sum = 0;
  bool found = false;
  for (uint32_t id = 0; id < p.size(); ++id) {
    if (p[id] == 0) continue;
    sum += p[id];
    choice.margin = std::min(choice.margin, std::fabs(sum - u));
    if (!found && sum > u) {
      choice.id = id;
      found = true;
    }
  }
  return choice;
}

}  // namespace mulciber::conformance
