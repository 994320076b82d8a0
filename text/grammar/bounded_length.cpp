#include "text/grammar/bounded_length.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace mulciber {
namespace {

/// The positions of characters in a pattern, and the positions that may follow each.
class Positions {
 public:
  /// A part of the pattern: whether it matches the empty text, its first positions and its last
  /// ones.
  struct Piece {
    bool nullable = true;
    std::vector<uint32_t> first = {}, last = {};
  };

  /// most: more repetitions make no difference.
  Positions(const Rules& rules, const std::set<Part>& characters, uint32_t most)
      : rules_(rules), characters_(characters), most_(most) {}

  Piece add(Part part) {
    constexpr size_t kMostSteps = 1'000'000;  // limits repetitions, also those of an empty text
    if (++steps_ > kMostSteps) refuse_size();
    if (characters_.contains(part)) return one(part);
    const Rules::Expression& e = rules_[part];
    Piece piece;
    switch (e.kind) {
      case Rules::Kind::kSequence:
        for (const Part each : e.parts) piece = joined(piece, add(each));
        return piece;
      case Rules::Kind::kChoice: return choice(e.parts);
      case Rules::Kind::kRepeat: return repeat(e);
      default: return piece;  // the empty text
    }
  }

  Part character(uint32_t position) const { return parts_[position]; }
  const std::set<uint32_t>& behind(uint32_t position) const { return follow_[position]; }

 private:
  Piece one(Part part) {
    if (parts_.size() >= kMostPositions) refuse_size();
    const auto position = static_cast<uint32_t>(parts_.size());
    parts_.push_back(part);
    follow_.emplace_back();
    return {false, {position}, {position}};
  }

  [[noreturn]] void refuse_size() const {
    refuse_grammar(
        rules_.notation(),
        fmt::format("has a pattern with a bounded length that counts more than {} characters",
                    kMostPositions),
        "give smaller bounds");
  }
  static void append(std::vector<uint32_t>& to, const std::vector<uint32_t>& more) {
    to.insert(to.end(), more.begin(), more.end());
  }
  void lead(const Piece& from, const Piece& to) {
    followers_ += from.last.size() * to.first.size();
    if (followers_ > kMostFollowers)
      refuse_grammar(rules_.notation(),
                     "has a pattern with a bounded length that can go on in too many ways",
                     "write it with fewer alternatives, or without bounds");
    for (const uint32_t position : from.last)
      follow_[position].insert(to.first.begin(), to.first.end());
  }

  Piece joined(const Piece& a, const Piece& b) {
    lead(a, b);
    Piece both = {a.nullable && b.nullable, a.first, b.last};
    if (a.nullable) append(both.first, b.first);
    if (b.nullable) append(both.last, a.last);
    return both;
  }
  Piece choice(const std::vector<Part>& parts) {
    Piece all = {.nullable = false};
    for (const Part part : parts) {
      const Piece piece = add(part);
      all.nullable = all.nullable || piece.nullable;
      append(all.first, piece.first);
      append(all.last, piece.last);
    }
    return all;
  }
  Piece repeat(const Rules::Expression& e) {
    const uint32_t bound = most_ == kUnbounded ? kUnbounded : most_ + 1;
    Piece piece;
    for (uint32_t i = 0; i < std::min(e.least, bound); ++i) piece = joined(piece, add(e.parts[0]));
    Piece more;
    if (e.most == kUnbounded) {
      more = add(e.parts[0]);
      lead(more, more);
      more.nullable = true;
    } else {
      for (uint32_t i = std::min(e.least, bound); i < std::min(e.most, bound); ++i) {
        more = joined(add(e.parts[0]), more);
        more.nullable = true;
      }
    }
    return joined(piece, more);
  }

  const Rules& rules_;
  const std::set<Part>& characters_;
  const uint32_t most_;
  std::vector<Part> parts_;
  std::vector<std::set<uint32_t>> follow_;
  size_t followers_ = 0, steps_ = 0;
};

}  // namespace

Part with_length(Rules& rules, Part pattern, const std::set<Part>& characters, uint32_t least,
                 uint32_t most) {
  Positions positions(rules, characters, most);
  const Positions::Piece whole = positions.add(pattern);
  const std::set<uint32_t> ends(whole.last.begin(), whole.last.end());
  // Rules by position and number of characters, including the position's own. Without an upper
  // bound all counts of at least `least` share one number.
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> known;
  // Far from both bounds the rules of a position are alike; the key is the position and whether the
  // count suffices.
  std::map<std::pair<uint32_t, bool>, uint32_t> far;
  const auto add_rule = [&](uint32_t position, uint32_t count) {
    const uint32_t rule = rules.add_rule("a bounded pattern");
    const bool enough = count >= least;
    if ((!enough && count + kAlikeBytes >= least) ||
        (most != kUnbounded && count + kAlikeBytes >= most))
      return rule;
    rules.alike(rule, far.try_emplace({position, enough}, rule).first->second);
    return rule;
  };
  std::vector<std::pair<uint32_t, uint32_t>> open;
  const auto going_on = [&](const auto& next, uint32_t count, bool may_end) {
    std::vector<Part> ways;
    if (may_end && count >= least) ways.push_back(rules.text(""));
    for (const uint32_t position : next) {
      if (count == most) break;
      const uint32_t then = most == kUnbounded ? std::min(count + 1, least) : count + 1;
      const auto [rule, is_new] = known.try_emplace({position, then}, 0);
      if (is_new) {
        rule->second = add_rule(position, then);
        open.push_back(rule->first);
      }
      ways.push_back(rules.sequence({positions.character(position), rules.call(rule->second)}));
    }
    return rules.choice(std::move(ways));
  };
  const Part begin = going_on(whole.first, 0, whole.nullable);
  while (!open.empty()) {
    const auto [position, count] = open.back();
    open.pop_back();
    rules.define(known.at({position, count}),
                 going_on(positions.behind(position), count, ends.contains(position)));
  }
  return begin;
}

}  // namespace mulciber
