#include "text/grammar/matcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "mulciber/error.h"

namespace mulciber {
namespace {

// Passes in which a rule replaces the rule that ends with it, without reading a byte between.
// Deeper ones go on the stack.
constexpr int kMostPasses = 64;

void sort_each_once(std::vector<uint32_t>& values) {
  std::ranges::sort(values);
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

}  // namespace

uint32_t WordLists::number(const std::vector<uint32_t>& words) {
  const auto [known, is_new] = numbers_.try_emplace(std::u32string(words.begin(), words.end()),
                                                    static_cast<uint32_t>(lists_.size()));
  if (is_new) {
    lists_.push_back(&known->first);
    constexpr size_t kNode = 96;  // bytes per node of the table
    bytes_ += kNode + words.size() * sizeof(uint32_t);
  }
  return known->second;
}

Matcher::Matcher(std::shared_ptr<const Automaton> automaton)
    : automaton_(std::move(automaton)),
      classes_(automaton_->class_count),
      marks_(automaton_->states.size()) {
  clear();
}

void Matcher::clear() {
  sets_ = {};
  states_ = {};
  stacks_.assign(1, {0, 0, 0});
  stack_numbers_.clear();
  next_.clear();
  facts_.clear();
  Sets first = {{{UINT32_MAX, kBottom}, {automaton_->starts[automaton_->root]}}};
  start_ = settle(first);
}

size_t Matcher::bytes() const {
  constexpr size_t kNode = 64;  // bytes per node of the map of stacks
  return sets_.bytes() + states_.bytes() + stacks_.size() * (sizeof(Stack) + kNode) +
         next_.size() * sizeof(uint32_t);
}

std::vector<Matcher::Level> Matcher::levels(State state) const {
  const std::span<const char32_t> words = states_[state];
  std::vector<Level> levels;
  for (size_t i = 1; i < words.size(); i += 2) levels.push_back({words[i], words[i + 1]});
  return levels;
}

Matcher::State Matcher::advance(State state, uint8_t byte) {
  if (bytes() > kMostBytes)
    throw ModelError("grammar",
                     fmt::format("has so many readings of a text that they take more than {} MiB",
                                 kMostBytes >> 20),
                     "write it so that fewer of its rules match the same text");
  Sets moved;
  for (const Level& level : levels(state)) {
    std::vector<uint32_t>* to = nullptr;
    for (const uint32_t from : sets_[level.set]) {
      count(1 + automaton_->states[from].edges.size());
      for (const Automaton::Edge& edge : automaton_->states[from].edges) {
        if (byte < edge.first || byte > edge.last) continue;
        // The map begins with the deepest stacks.
        if (!to) to = &moved[{UINT32_MAX - stacks_[level.stack].depth, level.stack}];
        to->push_back(edge.to);
      }
    }
  }
  const State next = moved.empty() ? kDead : settle(moved);
  next_[size_t{state} * classes_ + automaton_->classes[byte]] = next;
  return next;
}

void Matcher::refuse_work() const {
  throw ModelError("grammar",
                   "has so many readings of a text that finding what may follow takes too long",
                   "write it so that fewer of its rules match the same text");
}

bool Matcher::close(std::vector<uint32_t>& states,
                    std::map<uint32_t, std::vector<uint32_t>>& calls) {
  ++mark_;
  std::vector<uint32_t> open;
  const auto visit = [&](uint32_t state) {
    if (marks_[state] == mark_) return;
    marks_[state] = mark_;
    open.push_back(state);
  };
  for (const uint32_t state : states) visit(state);
  states.clear();
  bool ends = false;
  std::set<uint32_t> inlined;
  // The states to which a rule returns are known when all its callers were visited.
  for (int pass = 0; !open.empty() && pass < kMostPasses; ++pass) {
    while (!open.empty()) {
      const uint32_t at = open.back();
      open.pop_back();
      const Automaton::State& state = automaton_->states[at];
      count(1 + state.empty.size() + state.calls.size());
      states.push_back(at);
      ends = ends || state.end;
      for (const uint32_t to : state.empty) visit(to);
      for (const Automaton::Call& call : state.calls) {
        calls[call.rule].push_back(call.to);
        if (automaton_->nullable[call.rule]) visit(call.to);
      }
    }
    if (pass + 1 == kMostPasses) break;
    // A rule is read in its callers' place if all of them end after it.
    for (const auto& [rule, returns] : calls) {
      const bool last = std::ranges::none_of(
          returns, [&](uint32_t to) { return automaton_->states[to].goes_on; });
      if (last && inlined.insert(rule).second) visit(automaton_->starts[rule]);
    }
  }
  for (const uint32_t rule : inlined) {
    std::vector<uint32_t>& returns = calls[rule];
    std::erase_if(returns, [&](uint32_t to) { return !automaton_->states[to].goes_on; });
    if (returns.empty()) calls.erase(rule);
  }
  sort_each_once(states);
  return ends;
}

uint32_t Matcher::stack_of(const std::vector<uint32_t>& returns, uint32_t below) {
  const auto [known, is_new] = stack_numbers_.try_emplace({sets_.number(returns), below},
                                                          static_cast<uint32_t>(stacks_.size()));
  if (is_new) stacks_.push_back({known->first.first, below, stacks_[below].depth + 1});
  return known->second;
}

Matcher::State Matcher::settle(Sets& moved) {
  bool accepts = false;
  // Ends rules, the deepest first: the levels to which they return come later in the map.
  for (auto level = moved.begin(); level != moved.end(); ++level) {
    std::map<uint32_t, std::vector<uint32_t>> calls;
    if (!close(level->second, calls)) continue;
    const uint32_t stack = level->first.second;
    if (stack == kBottom) {
      accepts = true;
      continue;
    }
    const uint32_t below = stacks_[stack].below;
    const std::span<const char32_t> returns = sets_[stacks_[stack].returns];
    std::vector<uint32_t>& to = moved[{UINT32_MAX - stacks_[below].depth, below}];
    to.insert(to.end(), returns.begin(), returns.end());
  }
  // Begins rules. All rules that end here were ended above.
  std::vector<std::pair<uint32_t, uint32_t>> open;
  for (const auto& [key, states] : moved) open.push_back(key);
  while (!open.empty()) {
    const auto key = open.back();
    open.pop_back();
    std::map<uint32_t, std::vector<uint32_t>> calls;
    close(moved[key], calls);
    for (auto& [rule, returns] : calls) {
      sort_each_once(returns);
      const uint32_t stack = stack_of(returns, key.second);
      const std::pair<uint32_t, uint32_t> inner = {UINT32_MAX - stacks_[stack].depth, stack};
      std::vector<uint32_t>& states = moved[inner];
      const uint32_t start = automaton_->starts[rule];
      if (std::ranges::find(states, start) != states.end()) continue;
      states.push_back(start);
      open.push_back(inner);
    }
  }
  std::vector<Level> levels;
  for (auto& [key, states] : moved) {
    std::erase_if(states, [&](uint32_t state) { return automaton_->states[state].edges.empty(); });
    if (!states.empty()) levels.push_back({sets_.number(states), key.second});
  }
  return state_of(levels, accepts);
}

uint32_t Matcher::alike_set(uint32_t set) {
  std::vector<uint32_t> states;
  for (const uint32_t state : sets_[set]) states.push_back(automaton_->alike[state]);
  sort_each_once(states);
  return sets_.number(states);
}

uint32_t Matcher::alike_stack(uint32_t stack) {
  std::vector<uint32_t> open;  // from the innermost rule outwards
  for (; stack != kBottom; stack = stacks_[stack].below) open.push_back(stacks_[stack].returns);
  for (; !open.empty(); open.pop_back()) {
    const std::span<const char32_t> returns = sets_[alike_set(open.back())];
    stack = stack_of({returns.begin(), returns.end()}, stack);
  }
  return stack;
}

Matcher::State Matcher::alike(State state) {
  std::vector<Level> same = levels(state);
  for (Level& level : same) level = {alike_set(level.set), alike_stack(level.stack)};
  return same == levels(state) ? state : state_of(same, accepts(state));
}

Matcher::State Matcher::state_of(const std::vector<Level>& levels, bool accepts) {
  std::vector<uint32_t> words = {accepts ? 1u : 0u};
  for (const Level& level : levels) {
    words.push_back(level.set);
    words.push_back(level.stack);
  }
  const uint32_t state = states_.number(words);
  if (state == facts_.size()) {
    uint32_t depth = 0;
    for (const Level& level : levels) depth = std::max(depth, stacks_[level.stack].depth);
    facts_.push_back(2 * depth + words[0]);
  }
  if ((size_t{state} + 1) * classes_ > next_.size()) next_.resize((state + 1) * classes_, kUnknown);
  return state;
}

}  // namespace mulciber
