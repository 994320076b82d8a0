#include "text/grammar/automaton.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "text/grammar/utf8_ranges.h"

namespace mulciber {
namespace {

class Compiler {
 public:
  explicit Compiler(const Rules& rules) : rules_(rules) {}

  Automaton run() {
    const size_t count = rules_.rules().size();
    made_.starts.resize(count);
    for (uint32_t& start : made_.starts) start = state();
    for (uint32_t rule = 0; rule < count; ++rule) {
      const Rules::Rule& given = rules_.rules()[rule];
      if (!given.defined)
        refuse_grammar(rules_.notation(),
                       fmt::format("uses the rule '{}', which it does not define", given.name),
                       "define it");
      bodies_.push_back(static_cast<uint32_t>(made_.states.size()));
      finish(made_.starts[rule], given.body);
    }
    bodies_.push_back(static_cast<uint32_t>(made_.states.size()));
    find_alike_rules();
    // Bodies of an own rule may contain further own rules.
    for (size_t i = 0; i < own_rules_.size(); ++i)
      finish(made_.starts[own_rules_[i].rule], own_rules_[i].part);
    made_.root = rules_.root;
    return std::move(made_);
  }

 private:
  struct OwnRule {
    uint32_t rule;
    Part part;
  };

  /// Pairs the states of rules that are alike.
  void find_alike_rules() {
    for (uint32_t rule = 0; rule + 1 < bodies_.size(); ++rule) {
      const uint32_t other = rules_.rules()[rule].alike;
      if (other == rule) continue;
      const uint32_t size = bodies_[rule + 1] - bodies_[rule];
      if (size != bodies_[other + 1] - bodies_[other]) continue;
      made_.alike[made_.starts[rule]] = made_.starts[other];
      for (uint32_t i = 0; i < size; ++i) made_.alike[bodies_[rule] + i] = bodies_[other] + i;
    }
  }

  uint32_t state() {
    if (made_.states.size() >= kMostGrammarStates)
      refuse_grammar(rules_.notation(),
                     fmt::format("takes more than {} states", kMostGrammarStates),
                     "make it smaller, or give smaller bounds to what is repeated");
    made_.states.emplace_back();
    made_.alike.push_back(static_cast<uint32_t>(made_.states.size() - 1));
    return made_.alike.back();
  }
  void empty(uint32_t from, uint32_t to) { made_.states[from].empty.push_back(to); }
  uint32_t edge(uint32_t from, uint8_t first, uint8_t last) {
    const uint32_t to = state();
    made_.states[from].edges.push_back({first, last, to});
    return to;
  }
  uint32_t call(uint32_t from, uint32_t rule) {
    const uint32_t to = state();
    made_.states[from].calls.push_back({rule, to});
    return to;
  }

  void finish(uint32_t start, Part body) { made_.states[add(start, body)].end = true; }

  /// Adds states that match an expression from `from` on; returns the state after it. No added edge
  /// leads back to `from`.
  uint32_t add(uint32_t from, Part part) {
    const Rules::Expression& e = rules_[part];
    switch (e.kind) {
      case Rules::Kind::kText:
        for (const char c : e.text) from = edge(from, byte(c), byte(c));
        return from;
      case Rules::Kind::kClass: return add_class(from, e.set);
      case Rules::Kind::kSequence:
        for (const Part each : e.parts) from = add(from, each);
        return from;
      case Rules::Kind::kChoice: return add_choice(from, e.parts);
      case Rules::Kind::kRepeat: return add_repeat(from, e);
      case Rules::Kind::kRule: return call(from, e.rule);
    }
    return from;
  }

  static uint8_t byte(char c) { return static_cast<uint8_t>(c); }

  uint32_t add_class(uint32_t from, const CodeSet& set) {
    const uint32_t to = state();
    for (const Utf8Range& range : utf8_ranges(set)) {
      uint32_t at = from;
      for (size_t i = 0; i + 1 < range.size(); ++i) at = step(at, range[i]);
      made_.states[at].edges.push_back({range.back().first, range.back().last, to});
    }
    return to;
  }
  /// Reuses the edge of the previous sequence while their first bytes agree.
  uint32_t step(uint32_t from, const ByteRange& range) {
    for (const Automaton::Edge& known : made_.states[from].edges)
      if (known.first == range.first && known.last == range.last && last_step_ == known.to)
        return known.to;
    return last_step_ = edge(from, range.first, range.last);
  }

  uint32_t add_choice(uint32_t from, const std::vector<Part>& parts) {
    const uint32_t to = state();
    // Texts share their common prefixes: an enumeration of thousands of texts is one tree.
    const uint32_t root = state();
    empty(from, root);
    std::map<std::pair<uint32_t, uint8_t>, uint32_t> tree;
    for (const Part part : parts) {
      const Rules::Expression& e = rules_[part];
      if (e.kind != Rules::Kind::kText) {
        const uint32_t begin = state();
        empty(from, begin);
        empty(add(begin, part), to);
        continue;
      }
      uint32_t at = root;
      for (const char c : e.text) {
        const auto [known, is_new] = tree.try_emplace({at, byte(c)}, 0);
        if (is_new) known->second = edge(at, byte(c), byte(c));
        at = known->second;
      }
      empty(at, to);
    }
    return to;
  }

  uint32_t add_repeat(uint32_t from, const Rules::Expression& e) {
    const uint32_t copies = e.most == kUnbounded ? e.least + 1 : e.most;
    Part body = e.parts[0];
    const auto copy = [&](uint32_t at) {
      return copies > 2 && !is_small(body) ? call(at, own_rule(body)) : add(at, body);
    };
    // The state after the first copy is alike to every later one that is at least kAlikeBytes
    // copies before the last.
    uint32_t first = from;
    for (uint32_t i = 0; i < e.least; ++i) {
      from = copy(from);
      if (i == 0) first = from;
      if (i + 1 + kAlikeBytes < e.least) made_.alike[from] = first;
    }
    if (e.most == kUnbounded) {
      const uint32_t loop = state();
      empty(from, loop);
      empty(copy(loop), loop);
      return loop;
    }
    const uint32_t to = state();
    for (uint32_t i = e.least; i < e.most; ++i) {
      empty(from, to);
      from = copy(from);
      if (i == e.least) first = from;
      if (i + 1 + kAlikeBytes < e.most) made_.alike[from] = first;
    }
    empty(from, to);
    return to;
  }

  bool is_small(Part part) const {
    const Rules::Expression& e = rules_[part];
    return e.kind == Rules::Kind::kRule || (e.kind == Rules::Kind::kText && e.text.size() <= 1) ||
           (e.kind == Rules::Kind::kClass && (e.set.empty() || e.set.back().last < 0x80));
  }

  uint32_t own_rule(Part part) {
    const auto [known, is_new] = own_.try_emplace(part, static_cast<uint32_t>(made_.starts.size()));
    if (is_new) {
      own_rules_.push_back({known->second, part});
      made_.starts.push_back(state());
    }
    return known->second;
  }

  const Rules& rules_;
  Automaton made_;
  std::map<Part, uint32_t> own_;  // expressions that became rules of their own
  std::vector<OwnRule> own_rules_;
  std::vector<uint32_t> bodies_;  // first state of each rule, then the end
  uint32_t last_step_ = 0;
};

/// The states from which the end of their rule can be reached: with_bytes, by any text; else
/// without reading a byte.
std::vector<bool> reaching_end(const Automaton& a, bool with_bytes) {
  struct Caller {
    uint32_t from, rule, to;
  };
  std::vector<std::vector<uint32_t>> before(a.states.size());
  std::vector<Caller> callers;
  std::vector<std::vector<uint32_t>> by_target(a.states.size()), by_rule(a.starts.size());
  std::vector<bool> reaches(a.states.size());
  std::vector<uint32_t> open;
  const auto mark = [&](uint32_t state) {
    if (reaches[state]) return;
    reaches[state] = true;
    open.push_back(state);
  };
  for (uint32_t s = 0; s < a.states.size(); ++s) {
    const Automaton::State& state = a.states[s];
    for (const uint32_t to : state.empty) before[to].push_back(s);
    if (with_bytes)
      for (const Automaton::Edge& edge : state.edges) before[edge.to].push_back(s);
    for (const Automaton::Call& call : state.calls) {
      by_target[call.to].push_back(static_cast<uint32_t>(callers.size()));
      by_rule[call.rule].push_back(static_cast<uint32_t>(callers.size()));
      callers.push_back({s, call.rule, call.to});
    }
    if (state.end) mark(s);
  }
  std::map<uint32_t, uint32_t> rule_of_start;
  for (uint32_t rule = 0; rule < a.starts.size(); ++rule) rule_of_start[a.starts[rule]] = rule;
  const auto look = [&](uint32_t number) {
    const Caller& caller = callers[number];
    if (reaches[caller.to] && reaches[a.starts[caller.rule]]) mark(caller.from);
  };
  while (!open.empty()) {
    const uint32_t s = open.back();
    open.pop_back();
    for (const uint32_t from : before[s]) mark(from);
    for (const uint32_t caller : by_target[s]) look(caller);
    if (const auto rule = rule_of_start.find(s); rule != rule_of_start.end())
      for (const uint32_t caller : by_rule[rule->second]) look(caller);
  }
  return reaches;
}

/// Removes edges to states that never reach an end.
void prune(Automaton& a, const std::vector<bool>& alive) {
  for (Automaton::State& state : a.states) {
    std::erase_if(state.edges, [&](const auto& edge) { return !alive[edge.to]; });
    std::erase_if(state.calls,
                  [&](const auto& call) { return !alive[call.to] || !alive[a.starts[call.rule]]; });
    std::erase_if(state.empty, [&](uint32_t to) { return !alive[to]; });
  }
}

/// Rules that a rule may call before its first byte.
std::set<uint32_t> first_calls(const Automaton& a, uint32_t rule) {
  std::set<uint32_t> seen = {a.starts[rule]}, called;
  std::vector<uint32_t> open = {a.starts[rule]};
  const auto visit = [&](uint32_t state) {
    if (seen.insert(state).second) open.push_back(state);
  };
  while (!open.empty()) {
    const Automaton::State& state = a.states[open.back()];
    open.pop_back();
    for (const uint32_t to : state.empty) visit(to);
    for (const Automaton::Call& call : state.calls) {
      called.insert(call.rule);
      if (a.nullable[call.rule]) visit(call.to);
    }
  }
  return called;
}

/// Throws for a rule that may call itself before its first byte.
void refuse_left_recursion(const Automaton& a, const Rules& rules) {
  enum : uint8_t { kNew, kOpen, kDone };
  std::vector<uint8_t> seen(a.starts.size(), kNew);
  struct Level {
    uint32_t rule;
    std::vector<uint32_t> calls;
  };
  std::vector<Level> path;
  const auto enter = [&](uint32_t rule) {
    seen[rule] = kOpen;
    const std::set<uint32_t> calls = first_calls(a, rule);
    path.push_back({rule, {calls.begin(), calls.end()}});
  };
  for (uint32_t first = 0; first < a.starts.size(); ++first) {
    if (seen[first] == kNew) enter(first);
    while (!path.empty()) {
      if (path.back().calls.empty()) {
        seen[path.back().rule] = kDone;
        path.pop_back();
        continue;
      }
      const uint32_t next = path.back().calls.back();
      path.back().calls.pop_back();
      if (seen[next] == kNew)
        enter(next);
      else if (seen[next] == kOpen) {
        // Name the rule of the cycle that has a name in the grammar's text.
        auto named = path.rbegin();
        while (named->rule >= rules.rules().size() && named->rule != next) ++named;
        const std::string name = named->rule < rules.rules().size()
                                     ? rules.rules()[named->rule].name
                                     : std::string("a repetition");
        refuse_grammar(rules.notation(),
                       fmt::format("has left recursion: '{}' may begin with itself", name),
                       "let something stand before the recursion, or write it as a repetition");
      }
    }
  }
}

void find_classes(Automaton& a) {
  std::array<bool, 257> begins = {};
  for (const Automaton::State& state : a.states) {
    for (const Automaton::Edge& edge : state.edges) {
      begins[edge.first] = true;
      begins[edge.last + size_t{1}] = true;
    }
  }
  uint32_t number = 0;
  for (size_t byte = 0; byte < 256; ++byte) {
    if (byte > 0 && begins[byte]) ++number;
    a.classes[byte] = static_cast<uint8_t>(number);
  }
  a.class_count = number + 1;
}

/// Marks states from which bytes may still follow before the end of the rule.
void find_what_goes_on(Automaton& a) {
  std::vector<std::vector<uint32_t>> before(a.states.size());
  std::vector<uint32_t> open;
  for (uint32_t s = 0; s < a.states.size(); ++s) {
    for (const uint32_t to : a.states[s].empty) before[to].push_back(s);
    a.states[s].goes_on = !a.states[s].edges.empty() || !a.states[s].calls.empty();
    if (a.states[s].goes_on) open.push_back(s);
  }
  while (!open.empty()) {
    const uint32_t s = open.back();
    open.pop_back();
    for (const uint32_t from : before[s]) {
      if (a.states[from].goes_on) continue;
      a.states[from].goes_on = true;
      open.push_back(from);
    }
  }
}

}  // namespace

Automaton compile(const Rules& rules) {
  Automaton a = Compiler(rules).run();
  const std::vector<bool> alive = reaching_end(a, true);
  if (!alive[a.starts[a.root]])
    refuse_grammar(rules.notation(), "matches no text: it never comes to an end",
                   "give what repeats itself an end, and classes a character");
  prune(a, alive);
  const std::vector<bool> by_nothing = reaching_end(a, false);
  for (const uint32_t start : a.starts) a.nullable.push_back(by_nothing[start]);
  refuse_left_recursion(a, rules);
  find_classes(a);
  find_what_goes_on(a);
  return a;
}

}  // namespace mulciber
