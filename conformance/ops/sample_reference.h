// Sampling in double precision: what one row chooses, and how near the choice was to another.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ops/sampling.h"

namespace mulciber::conformance {

/// The first word of Philox 4x32-10 of (step, stream, 0, 0) under the key `seed`, as a number
/// within (0, 1).
double random_number(uint64_t seed, uint32_t step, uint32_t stream);

/// Whether a choice can be made from logits: none is NaN or infinity.
bool are_logits(std::span<const double> logits);

/// Logits after penalties, biases, bans and a mask, of those that are_logits(). history: the whole
/// sequence.
std::vector<double> penalized(std::span<const double> logits, const Sampling& sampling,
                              std::span<const uint32_t> history, std::span<const uint32_t> banned,
                              const LogitBiases& biases = {}, const IdMask& mask = {});

struct Choice {
  uint32_t id = 0;
  /// The smallest share of a total by which a sum missed a decision that would have been another:
  /// of a filter's threshold, or of the draw. Infinite where the choice is greedy.
  double margin = 0;
  /// Probabilities of all ids, those that filters took away being 0.
  std::vector<double> probabilities;
};

/// The choice among penalized logits at random number u, by sorting.
Choice choose(std::span<const double> logits, const Sampling& sampling, double u);

}  // namespace mulciber::conformance
