// A grammar as an automaton over bytes that calls its rules: a recursive transition network
// (Woods 1970, doi:10.1145/355598.362773).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "text/grammar/rules.h"

namespace mulciber {

struct Automaton {
  /// Reading a byte of [first, last] leads to `to`.
  struct Edge {
    uint8_t first, last;
    uint32_t to;
  };
  /// Reading a text of `rule` leads to `to`.
  struct Call {
    uint32_t rule, to;
  };
  struct State {
    std::vector<Edge> edges;
    std::vector<Call> calls;
    std::vector<uint32_t> empty;  // states reached without a byte
    bool end = false;             // end of its rule
    bool goes_on = false;         // bytes may follow before the rule ends
  };
  std::vector<State> states;
  std::vector<uint32_t> starts;  // first state of each rule
  std::vector<bool> nullable;    // rules that the empty text matches
  uint32_t root = 0;             // the start rule
  /// For each state, a state that accepts the same continuations for the next kAlikeBytes bytes:
  /// states in the middle of a long repetition share one. Its own number where there is no other.
  std::vector<uint32_t> alike;
  /// Class of each byte: bytes that no edge distinguishes share one.
  std::array<uint8_t, 256> classes = {};
  uint32_t class_count = 0;
};

/// Compiles rules. From every state of the result the end of its rule can be reached, so that a
/// valid beginning can always be completed. Throws ModelError for a rule that is not defined or
/// calls itself before its first byte, for a grammar that matches nothing, and beyond
/// kMostGrammarStates.
Automaton compile(const Rules& rules);

}  // namespace mulciber
