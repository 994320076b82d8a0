// Patterns that match texts with a bounded number of characters.
#pragma once

#include <cstdint>
#include <set>

#include "text/grammar/rules.h"

namespace mulciber {

/// Most positions in a pattern of bounded length, and most pairs of a position and its follower.
/// Beyond them with_length() throws ModelError.
constexpr size_t kMostPositions = 5000, kMostFollowers = 200'000;

/// Restricts `pattern` to texts of `least` to `most` characters (kUnbounded: any number), by a rule
/// for each of its positions and number of earlier characters. characters: the expressions that
/// match one character; `pattern` consists of these, sequences, choices and repetitions. Source:
/// the position automaton of Glushkov 1961, doi:10.1070/RM1961v016n05ABEH004112.
Part with_length(Rules& rules, Part pattern, const std::set<Part>& characters, uint32_t least,
                 uint32_t most);

}  // namespace mulciber
