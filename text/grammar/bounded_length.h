// Patterns whose texts have a bounded number of characters.
#pragma once

#include <cstdint>
#include <set>

#include "text/grammar/rules.h"

namespace mulciber {

/// Positions in patterns whose lengths are bounded, and ways from one to the next, at most. Beyond,
/// ModelError is thrown.
constexpr size_t kMostPositions = 5000, kMostFollowers = 200'000;

/// What `pattern` matches in from `least` to `most` characters (kUnbounded: any number): a rule for
/// each position in it and number of characters before it. characters: the expressions that match
/// one; `pattern` is made of these, sequences, choices and repetitions. Source: the position
/// automaton of Glushkov 1961, doi:10.1070/RM1961v016n05ABEH004112.
Part with_length(Rules& rules, Part pattern, const std::set<Part>& characters, uint32_t least,
                 uint32_t most);

}  // namespace mulciber
