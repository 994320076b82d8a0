// Matches a text byte by byte and tells which bytes may follow.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "text/grammar/automaton.h"

namespace mulciber {

/// Stores lists of words without duplicates; a list is named by its number.
class WordLists {
 public:
  uint32_t number(const std::vector<uint32_t>& words);
  std::span<const char32_t> operator[](uint32_t number) const { return *lists_[number]; }
  /// Memory of all lists and of the index.
  size_t bytes() const { return bytes_; }

 private:
  std::unordered_map<std::u32string, uint32_t> numbers_;
  std::vector<const std::u32string*> lists_;
  size_t bytes_ = 0;
};

/// Matches texts against an automaton. A state stands for all that was read: for every stack of
/// open rules, the possible states of the automaton. Rules that begin at the same byte under one
/// stack are matched once, whoever called them. A rule whose caller ends with it leaves nothing on
/// the stack, so that a long list needs no deeper stack than a short one. States are made at first
/// use and found again by number: a deterministic automaton, built lazily for the texts that occur.
/// Not thread-safe.
class Matcher {
 public:
  using State = uint32_t;
  static constexpr State kDead = UINT32_MAX;  // no text of the grammar begins like this
  /// Bytes that states may take. Beyond them next() throws ModelError; clear() frees them.
  static constexpr size_t kMostBytes = size_t{128} << 20;

  explicit Matcher(std::shared_ptr<const Automaton> automaton);

  /// States and edges of the automaton visited so far, plus what a caller adds with count(). Beyond
  /// a bound, at first kMostWork, next() and count() throw ModelError.
  uint64_t work() const { return work_; }
  void count(uint64_t work) {
    work_ += work;
    if (work_ > most_work_) refuse_work();
  }
  void bound_work(uint64_t most) { most_work_ = most; }
  /// Takes one core about 0.1 s.
  static constexpr uint64_t kMostWork = 20'000'000;

  State start() const { return start_; }
  State next(State state, uint8_t byte) {
    const uint32_t known = next_[size_t{state} * classes_ + automaton_->classes[byte]];
    return known != kUnknown ? known : advance(state, byte);
  }
  /// Whether the text read so far is complete.
  bool accepts(State state) const { return (facts_[state] & 1) != 0; }
  /// The largest number of open rules.
  uint32_t depth(State state) const { return facts_[state] >> 1; }

  /// A part of a state: states of the automaton (`set`) under one stack of open rules.
  struct Level {
    uint32_t set, stack;
    bool operator==(const Level&) const = default;
  };
  std::vector<Level> levels(State state) const;
  /// The state of one level without the rules around it; accepts() then tells whether the level may
  /// end.
  State alone(uint32_t set) { return state_of({{set, kBottom}}, false); }
  /// A state with equal continuations for kAlikeBytes bytes, which many states share.
  State alike(State state);
  State with(const Level& level) { return state_of({level}, false); }

  size_t bytes() const;
  /// Forgets all states; earlier state numbers become invalid.
  void clear();

 private:
  static constexpr uint32_t kUnknown = UINT32_MAX - 1;
  static constexpr uint32_t kBottom = 0;
  /// A stack of open rules: the states to which the innermost rule returns, and the stack below.
  struct Stack {
    uint32_t returns, below, depth;
  };
  using Sets = std::map<std::pair<uint32_t, uint32_t>, std::vector<uint32_t>>;

  State advance(State state, uint8_t byte);
  /// Makes the state after `moved`, when rules have ended and begun.
  State settle(Sets& moved);
  /// Adds all states that are reached without a byte. Calls that must return are added to `calls`.
  /// Returns whether the end of the rule is reached.
  bool close(std::vector<uint32_t>& states, std::map<uint32_t, std::vector<uint32_t>>& calls);
  uint32_t stack_of(const std::vector<uint32_t>& returns, uint32_t below);
  [[noreturn]] void refuse_work() const;
  uint32_t alike_set(uint32_t set);
  uint32_t alike_stack(uint32_t stack);
  State state_of(const std::vector<Level>& levels, bool accepts);

  std::shared_ptr<const Automaton> automaton_;
  size_t classes_;
  WordLists sets_, states_;
  std::vector<Stack> stacks_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> stack_numbers_;
  std::vector<uint32_t> next_;   // (states, classes)
  std::vector<uint32_t> facts_;  // for each state: twice its depth, plus 1 where it accepts
  std::vector<uint32_t> marks_;  // for close(): the last visit of each state
  uint32_t mark_ = 0;
  uint64_t work_ = 0, most_work_ = kMostWork;
  State start_ = 0;
};

}  // namespace mulciber
