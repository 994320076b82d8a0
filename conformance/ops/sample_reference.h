// Sampling in double precision: the choice of one row, and its distance from another choice.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ops/sampling.h"

namespace mulciber::conformance {

/// The first word of Philox 4x32-10 of (step, stream, 0, 0) under the key `seed`, as a number in
/// (0, 1).
double random_number(uint64_t seed, uint32_t step, uint32_t stream);

/// Whether logits allow a choice: none is NaN or infinity.
bool are_logits(std::span<const double> logits);

/// Logits after penalties, biases, bans and a mask; they must be are_logits(). history: the whole
/// sequence.
std::vector<double> penalized(std::span<const double> logits, const Sampling& sampling,
                              std::span<const uint32_t> history, std::span<const uint32_t> banned,
                              const LogitBiases& biases = {}, const IdMask& mask = {});

struct Choice {
  uint32_t id = 0;
  /// The smallest share of a total by which a sum missed another decision: at a filter's threshold,
  /// or at the draw. Infinite where the choice is greedy.
  double margin = 0;
  /// Probabilities of all ids; 0 for those that filters removed.
  std::vector<double> probabilities;
};

/// Chooses among penalized logits with the random number u, by sorting.
Choice choose(std::span<const double> logits, const Sampling& sampling, double u);

}  // namespace mulciber::conformance
