// Which bytes may follow, byte by byte.
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

/// Words, each list once: its number is its name.
class WordLists {
 public:
  uint32_t number(const std::vector<uint32_t>& words);
  std::span<const char32_t> operator[](uint32_t number) const { return *lists_[number]; }
  /// Of all lists, with what it takes to find them.
  size_t bytes() const { return bytes_; }

 private:
  std::unordered_map<std::u32string, uint32_t> numbers_;
  std::vector<const std::u32string*> lists_;
  size_t bytes_ = 0;
};

/// Reads texts by an automaton. What has been read is a state: for every stack of rules that are
/// open, the automaton's states that it may stand in. Rules that begin at the same place under one
/// stack are read once, whoever called them, and a rule whose caller ends with it leaves nothing on
/// the stack, so that a list needs no more of it for being longer. States are made when they are
/// first met, and found again by their number: the deterministic automaton of what texts need.
/// Not thread-safe.
class Matcher {
 public:
  using State = uint32_t;
  static constexpr State kDead = UINT32_MAX;  // no text of the grammar begins so
  /// Bytes that states may take. Beyond, next() throws ModelError: clear() makes room.
  static constexpr size_t kMostBytes = size_t{128} << 20;

  explicit Matcher(std::shared_ptr<const Automaton> automaton);

  /// States and edges of the automaton that were looked at so far, with what a caller adds, and how
  /// many may be: beyond, next() and count() throw ModelError. At first kMostWork.
  uint64_t work() const { return work_; }
  void count(uint64_t work) {
    work_ += work;
    if (work_ > most_work_) refuse_work();
  }
  void bound_work(uint64_t most) { most_work_ = most; }
  /// Takes a core 0.1 s.
  static constexpr uint64_t kMostWork = 20'000'000;

  State start() const { return start_; }
  State next(State state, uint8_t byte) {
    const uint32_t known = next_[size_t{state} * classes_ + automaton_->classes[byte]];
    return known != kUnknown ? known : advance(state, byte);
  }
  /// Whether what was read is a text of the grammar.
  bool accepts(State state) const { return (facts_[state] & 1) != 0; }
  /// Rules that are open, at most.
  uint32_t depth(State state) const { return facts_[state] >> 1; }

  /// A state reads what its levels read: the automaton's states under one stack of open rules.
  struct Level {
    uint32_t set, stack;
    bool operator==(const Level&) const = default;
  };
  std::vector<Level> levels(State state) const;
  /// Of one level alone, as if no more were open: accepts() then says that the level may end.
  State alone(uint32_t set) { return state_of({{set, kBottom}}, false); }
  /// A state that allows the same for kAlikeBytes bytes, the same one for many.
  State alike(State state);
  State with(const Level& level) { return state_of({level}, false); }

  size_t bytes() const;
  /// Forgets all states; numbers given before mean nothing any more.
  void clear();

 private:
  static constexpr uint32_t kUnknown = UINT32_MAX - 1;
  static constexpr uint32_t kBottom = 0;
  /// Open rules: where the innermost goes on, and what is open around it.
  struct Stack {
    uint32_t returns, below, depth;
  };
  using Sets = std::map<std::pair<uint32_t, uint32_t>, std::vector<uint32_t>>;

  State advance(State state, uint8_t byte);
  /// The state of what stands under each stack, once rules have ended and begun.
  State settle(Sets& moved);
  /// Adds what is reached without a byte, but for calls that must return, which are added to
  /// `calls`. Gives whether the end of the rule is reached.
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
  std::vector<uint32_t> facts_;  // of each state: twice its depth, and 1 where it accepts
  std::vector<uint32_t> marks_;  // of close(): when a state was seen last
  uint32_t mark_ = 0;
  uint64_t work_ = 0, most_work_ = kMostWork;
  State start_ = 0;
};

}  // namespace mulciber
