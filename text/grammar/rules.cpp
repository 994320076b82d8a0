#include "text/grammar/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "mulciber/error.h"

namespace mulciber {
namespace {

constexpr CodeRange kSurrogates = {0xd800, 0xdfff};
constexpr uint32_t kLastCode = 0x10ffff;

}  // namespace

CodeSet normalized(const CodeSet& set) {
  CodeSet split;
  for (CodeRange range : set) {
    range.last = std::min(range.last, kLastCode);
    // Surrogates are not characters and have no UTF-8.
    if (range.first < kSurrogates.first)
      split.push_back({range.first, std::min(range.last, kSurrogates.first - 1)});
    if (range.last > kSurrogates.last)
      split.push_back({std::max(range.first, kSurrogates.last + 1), range.last});
  }
  std::erase_if(split, [](const CodeRange& range) { return range.first > range.last; });
  std::ranges::sort(split, {}, &CodeRange::first);
  CodeSet merged;
  for (const CodeRange& range : split) {
    if (!merged.empty() && range.first <= merged.back().last + 1)
      merged.back().last = std::max(merged.back().last, range.last);
    else
      merged.push_back(range);
  }
  return merged;
}

CodeSet complement(const CodeSet& set) {
  CodeSet rest;
  uint32_t next = 0;
  for (const CodeRange& range : normalized(set)) {
    if (range.first > next) rest.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= kLastCode) rest.push_back({next, kLastCode});
  return normalized(rest);
}

CodeSet without(const CodeSet& set, const CodeSet& taken) {
  CodeSet both = complement(set);
  both.insert(both.end(), taken.begin(), taken.end());
  return complement(both);
}

void refuse_grammar(const std::string& notation, std::string problem, std::string remedy) {
  throw ModelError(notation, std::move(problem), std::move(remedy));
}

Part Rules::add(Expression expression) {
  if (expressions_.size() >= kMostGrammarStates)
    refuse_grammar(notation_, fmt::format("has more than {} expressions", kMostGrammarStates),
                   "make it smaller");
  expressions_.push_back(std::move(expression));
  return static_cast<Part>(expressions_.size() - 1);
}

Part Rules::text(std::string_view bytes) {
  return add({.kind = Kind::kText, .text = std::string(bytes)});
}

Part Rules::one_of(const CodeSet& set) {
  return add({.kind = Kind::kClass, .set = normalized(set)});
}

Part Rules::sequence(std::vector<Part> parts) {
  if (parts.size() == 1) return parts[0];
  return add({.kind = Kind::kSequence, .parts = std::move(parts)});
}

Part Rules::choice(std::vector<Part> parts) {
  if (parts.size() == 1) return parts[0];
  return add({.kind = Kind::kChoice, .parts = std::move(parts)});
}

Part Rules::repeat(Part part, uint32_t least, uint32_t most) {
  const uint32_t counted = most == kUnbounded ? least : most;
  if (counted > kMostRepetitions)
    refuse_grammar(notation_,
                   fmt::format("repeats something {} times, at most {} are counted", counted,
                               kMostRepetitions),
                   "give a smaller bound, or none");
  return add({.kind = Kind::kRepeat, .parts = {part}, .least = least, .most = most});
}

Part Rules::call(uint32_t rule) { return add({.kind = Kind::kRule, .rule = rule}); }

uint32_t Rules::add_rule(std::string name) {
  const auto number = static_cast<uint32_t>(rules_.size());
  rules_.push_back({.name = std::move(name), .alike = number});
  return number;
}

void Rules::define(uint32_t rule, Part body) {
  rules_[rule].body = body;
  rules_[rule].defined = true;
}

Part Rules::shared(std::string name, Part body) {
  const uint32_t rule = add_rule(std::move(name));
  define(rule, body);
  return call(rule);
}

}  // namespace mulciber
