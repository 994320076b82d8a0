#include "text/grammar/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "text/grammar/bounded_length.h"

namespace mulciber {
namespace {

const CodeSet kEscaped = {{0, 0x1f}, {'"', '"'}, {'\\', '\\'}};
constexpr uint64_t kMostWhole = 9'999'999'999'999'999;  // kMostDigits digits

/// Characters of a JSON string, each with one spelling.
class StringCharacter : public CharacterWriter {
 public:
  Part operator()(Rules& rules, const CodeSet& set) const override {
    const CodeSet plain = without(set, kEscaped);
    std::vector<Part> parts;
    if (!plain.empty() || set.empty()) parts.push_back(rules.one_of(plain));
    for (const CodeRange& range : without(set, complement(kEscaped)))
      for (uint32_t c = range.first; c <= range.last; ++c) parts.push_back(rules.text(escaped(c)));
    return *made_.insert(rules.choice(std::move(parts))).first;
  }
  /// All expressions returned so far.
  const std::set<Part>& made() const { return made_; }

 private:
  static std::string escaped(uint32_t c) {
    constexpr std::string_view kShort = "\"\"\\\\\bb\ff\nn\rr\tt";
    for (size_t i = 0; i < kShort.size(); i += 2)
      if (static_cast<uint32_t>(kShort[i]) == c) return {'\\', kShort[i + 1]};
    return fmt::format("\\u{:04x}", c);
  }

  mutable std::set<Part> made_;
};

uint64_t power_of_ten(uint32_t exponent) {
  uint64_t power = 1;
  for (uint32_t i = 0; i < exponent; ++i) power *= 10;
  return power;
}

}  // namespace

DigitsLeft DigitsLeft::behind(uint32_t digit) const {
  // This is below 2^57: a divisor has kMostDigits digits at most.
  const uint64_t added = digit * power_of_ten(count - 1);
  return {count - 1, divisor, (remainder + added) % divisor};
}

bool DigitsLeft::can_end() const { return (divisor - remainder) % divisor < power_of_ten(count); }

uint64_t remainders_of(uint64_t divisor) {
  uint64_t sum = 0;
  for (uint32_t count = 0; count < kMostDigits; ++count) {
    // Remainders are multiples of the common divisor of the divisor and the power of ten.
    const uint64_t power = power_of_ten(count), common = std::gcd(divisor, power);
    sum += std::min(divisor / common, (power + common - 1) / common);
  }
  return sum;
}

Part JsonText::made(std::optional<Part>& part, const char* name, Part (JsonText::*make)()) {
  if (!part) {
    const uint32_t rule = rules_.add_rule(name);
    part = rules_.call(rule);
    rules_.define(rule, (this->*make)());
  }
  return *part;
}

Part JsonText::gap() { return made(gap_, "gap", &JsonText::make_gap); }
Part JsonText::character() { return made(character_, "character", &JsonText::make_character); }
Part JsonText::value() { return made(value_, "value", &JsonText::make_value); }

Part JsonText::make_gap() {
  const Part indent = rules_.repeat(rules_.one_of(CodeSet{{' ', ' '}, {'\t', '\t'}}), 0, 20);
  return rules_.choice(
      {rules_.text(""), rules_.text(" "), rules_.sequence({rules_.text("\n"), indent})});
}

Part JsonText::colon() { return rules_.choice({rules_.text(":"), rules_.text(": ")}); }

Part JsonText::make_character() {
  const Part digit = rules_.one_of(CodeSet{{'0', '9'}, {'a', 'f'}, {'A', 'F'}});
  const auto hex = [&](const CodeSet& first, const CodeSet& second) {
    return rules_.sequence({rules_.one_of(first), rules_.one_of(second), digit, digit});
  };
  const CodeSet any = {{'0', '9'}, {'a', 'f'}, {'A', 'F'}}, d = {{'d', 'd'}, {'D', 'D'}};
  // Surrogates appear only as a pair.
  const Part code =
      rules_.choice({hex(without(any, d), any), hex(d, {{'0', '7'}}),
                     rules_.sequence({hex(d, {{'8', '9'}, {'a', 'b'}, {'A', 'B'}}),
                                      rules_.text("\\u"), hex(d, {{'c', 'f'}, {'C', 'F'}})})});
  CodeSet letters;
  for (const char c : std::string_view("\"\\/bfnrt"))
    letters.push_back({static_cast<uint32_t>(c), static_cast<uint32_t>(c)});
  const Part escape = rules_.sequence(
      {rules_.text("\\"),
       rules_.choice({rules_.one_of(letters), rules_.sequence({rules_.text("u"), code})})});
  return rules_.choice({rules_.one_of(complement(kEscaped)), escape});
}

Part JsonText::string(uint32_t least, uint32_t most) {
  // Use the body itself, not a call of its rule: one step less for every byte.
  character();
  const Part character = rules_.rules()[rules_[*character_].rule].body;
  return rules_.sequence(
      {rules_.text("\""), rules_.repeat(character, least, most), rules_.text("\"")});
}

Part JsonText::pattern(std::string_view pattern, bool searches, uint32_t least, uint32_t most) {
  const StringCharacter character;
  Part inner = read_pattern(rules_, pattern, character, searches);
  if (least > 0 || most != kUnbounded)
    inner = with_length(rules_, inner, character.made(), least, most);
  return rules_.sequence({rules_.text("\""), inner, rules_.text("\"")});
}

Part JsonText::digits(uint32_t least, uint32_t most) {
  return rules_.repeat(rules_.one_of('0', '9'), least, most);
}

Part JsonText::multiples(const DigitsLeft& left, char first, char last) {
  // Digits with equal remainders form one class.
  std::map<DigitsLeft, CodeSet> next;
  for (char digit = first; digit <= last; ++digit) {
    const DigitsLeft then = left.behind(static_cast<uint32_t>(digit - '0'));
    const auto code = static_cast<uint32_t>(digit);
    if (then.can_end()) next[then].push_back({code, code});
  }
  std::vector<Part> parts;
  for (const auto& [then, digits] : next)
    parts.push_back(rules_.sequence({rules_.one_of(digits), any_multiple(then)}));
  return rules_.choice(std::move(parts));
}

Part JsonText::any_multiple(const DigitsLeft& left) {
  if (left.divisor == 1 || left.count == 0)
    return left.can_end() ? digits(left.count, left.count) : rules_.choice({});
  const auto known = multiples_.find(left);
  if (known != multiples_.end()) return known->second;
  const Part part = rules_.shared("multiple", multiples(left, '0', '9'));
  multiples_[left] = part;
  return part;
}

Part JsonText::of_length(std::string_view least, std::string_view most, const DigitsLeft& left) {
  const auto all = [](std::string_view text, char digit) {
    return std::ranges::all_of(text, [&](char c) { return c == digit; });
  };
  if (all(least, '0') && all(most, '9')) return any_multiple(left);
  const std::string_view from = least.substr(1), to = most.substr(1);
  const std::string zeros(from.size(), '0'), nines(from.size(), '9');
  const auto begun = [&](char digit, std::string_view low, std::string_view high) {
    return rules_.sequence({rules_.text(std::string(1, digit)),
                            of_length(low, high, left.behind(static_cast<uint32_t>(digit - '0')))});
  };
  if (least[0] == most[0]) return begun(least[0], from, to);
  std::vector<Part> parts = {begun(least[0], from, nines), begun(most[0], zeros, to)};
  const auto first = static_cast<char>(least[0] + 1), last = static_cast<char>(most[0] - 1);
  if (first <= last) parts.push_back(multiples(left, first, last));
  return rules_.choice(std::move(parts));
}

Part JsonText::whole(uint64_t least, uint64_t most, uint64_t divisor) {
  std::vector<Part> parts;
  uint64_t first = 0, last = 9;  // numbers of one length
  for (uint32_t length = 1; length <= kMostDigits;
       ++length, first = last + 1, last = last * 10 + 9) {
    const uint64_t from = std::max(first, least), to = std::min(last, most);
    if (from <= to)
      parts.push_back(of_length(std::to_string(from), std::to_string(to), {length, divisor}));
  }
  return rules_.choice(std::move(parts));
}

namespace {

/// State before the first of `count` digits after the decimal point.
DigitsLeft decimals_of(const NumberBounds& of, uint32_t count) {
  const uint64_t rest = power_of_ten(of.decimals - count);
  return {count, of.divisor / std::gcd(of.divisor, rest)};
}

}  // namespace

Part JsonText::fraction(const NumberBounds& of) {
  if (of.decimals == 0) return rules_.sequence({rules_.text("."), digits(1, kMostDigits)});
  std::vector<Part> parts;
  for (uint32_t count = 1; count <= of.decimals; ++count)
    parts.push_back(any_multiple(decimals_of(of, count)));
  return rules_.sequence({rules_.text("."), rules_.choice(std::move(parts))});
}

Part JsonText::positive_fraction(const NumberBounds& of) {
  if (of.decimals == 0)
    return rules_.sequence({rules_.text("."), rules_.repeat(rules_.text("0"), 0, kMostDigits / 2),
                            rules_.one_of('1', '9'), digits(0, kMostDigits / 2)});
  std::vector<Part> parts;
  for (uint32_t count = 1; count <= of.decimals; ++count)
    for (uint32_t zeros = 0; zeros < count; ++zeros) {
      const DigitsLeft left = {count - zeros, decimals_of(of, count).divisor};
      parts.push_back(
          rules_.sequence({rules_.text(std::string(zeros, '0')), multiples(left, '1', '9')}));
    }
  return rules_.sequence({rules_.text("."), rules_.choice(std::move(parts))});
}

Part JsonText::magnitude(uint64_t least, bool above, uint64_t most, bool below, bool whole_only,
                         const NumberBounds& of) {
  std::vector<Part> parts;
  const uint64_t first = least + (above ? 1 : 0);
  if (whole_only) {
    if (below && most == 0) return rules_.choice({});
    return whole(first, most - (below ? 1 : 0), of.divisor);
  }
  if (most > 0)
    parts.push_back(rules_.sequence({whole(first, most - 1), rules_.optional(fraction(of))}));
  if (above && least < most)
    parts.push_back(rules_.sequence({whole(least, least), positive_fraction(of)}));
  if (!below && first <= most) parts.push_back(whole(most, most));
  return rules_.choice(std::move(parts));
}

Part JsonText::bounded(const NumberBounds& bounds, bool whole_only) {
  const auto most_whole = static_cast<int64_t>(kMostWhole);
  const int64_t least = std::clamp(bounds.least.value_or(-most_whole), -most_whole, most_whole);
  const int64_t most = std::clamp(bounds.most.value_or(most_whole), -most_whole, most_whole);
  std::vector<Part> parts;
  if (most >= 0)
    parts.push_back(magnitude(static_cast<uint64_t>(std::max<int64_t>(least, 0)),
                              least >= 0 && bounds.above_least, static_cast<uint64_t>(most),
                              bounds.below_most, whole_only, bounds));
  if (least < 0) {
    const bool from_zero = most >= 0;
    parts.push_back(rules_.sequence(
        {rules_.text("-"),
         magnitude(static_cast<uint64_t>(from_zero ? 0 : -most), from_zero || bounds.below_most,
                   static_cast<uint64_t>(-least), bounds.above_least, whole_only, bounds)}));
  }
  return rules_.choice(std::move(parts));
}

Part JsonText::integer(const NumberBounds& bounds) {
  return rules_.shared("integer", bounded(bounds, true));
}

Part JsonText::number(const NumberBounds& bounds) {
  if (bounds.least || bounds.most || bounds.decimals > 0)
    return rules_.shared("number", bounded(bounds, false));
  const Part sign = rules_.optional(rules_.text("-"));
  // Two digits cover the exponents that a double needs.
  const Part exponent = rules_.sequence(
      {rules_.one_of(CodeSet{{'e', 'e'}, {'E', 'E'}}),
       rules_.optional(rules_.one_of(CodeSet{{'+', '+'}, {'-', '-'}})), digits(1, 2)});
  return rules_.shared(
      "number", rules_.sequence({sign, whole(0, kMostWhole), rules_.optional(fraction(bounds)),
                                 rules_.optional(exponent)}));
}

Part JsonText::boolean() { return rules_.choice({rules_.text("true"), rules_.text("false")}); }

Part JsonText::braces(char open, Part members, char close) {
  const Part empty = rules_.sequence({gap(), rules_.text(std::string(1, close))});
  return rules_.sequence({rules_.text(std::string(1, open)), gap(), members, empty});
}

Part JsonText::object() {
  const Part one = member(string(0, kUnbounded), value());
  const Part more = rules_.repeat(rules_.sequence({comma(), one}), 0, kUnbounded);
  return rules_.choice({rules_.text("{}"), braces('{', rules_.sequence({one, more}), '}')});
}

Part JsonText::array() {
  const Part more = rules_.repeat(rules_.sequence({comma(), value()}), 0, kUnbounded);
  return rules_.choice({rules_.text("[]"), braces('[', rules_.sequence({value(), more}), ']')});
}

Part JsonText::make_value() {
  return rules_.choice({string(0, kUnbounded), number({}), boolean(), rules_.text("null"),
                        rules_.shared("object", object()), rules_.shared("array", array())});
}

}  // namespace mulciber
