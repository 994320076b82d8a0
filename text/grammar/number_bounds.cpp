#include "text/grammar/number_bounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "checkpoints/json.h"
#include "text/grammar/schema_merge.h"

namespace mulciber {
namespace {

// Each remainder needs a state for every digit.
constexpr uint64_t kMostRemainders = 4096;

[[noreturn]] void refuse(const std::string& path, std::string problem, std::string remedy = {}) {
  refuse_grammar(fmt::format("{} at {}", kSchemaNotation, path), std::move(problem),
                 std::move(remedy));
}

/// Number of digits after the point of a fraction that divides 1; 0 for other numbers or too many
/// digits.
uint32_t decimals_of(double value) {
  constexpr uint32_t kMostDecimals = 8;
  double power = 1;
  for (uint32_t count = 1; count <= kMostDecimals; ++count) {
    power *= 10;
    // Both numbers are whole, so the quotient is the double nearest to the decimal notation.
    const double unit = std::round(value * power);
    if (unit < 1 || unit / power != value) continue;
    return std::fmod(power, unit) == 0 ? count : 0;
  }
  return 0;
}

void set_divisor(const Json& schema, const std::string& path, bool whole, NumberBounds& to) {
  const auto found = schema.find("multipleOf");
  if (found == schema.end()) return;
  if (!found->is_number() || !(found->get<double>() > 0))
    refuse(path, "multipleOf is no number above 0");
  const auto value = found->get<double>();
  if (const uint32_t decimals = value < 1 ? decimals_of(value) : 0; decimals > 0) {
    if (whole) return;  // every whole number is a multiple
    to.decimals = decimals;
    to.divisor = static_cast<uint64_t>(std::round(value * std::pow(10, to.decimals)));
    return;
  }
  if (value != std::floor(value) || value >= 1e15)
    refuse(path,
           fmt::format("multipleOf is {}, only whole numbers below 1e15 are supported, and "
                       "fractions of at most 8 digits that go into 1",
                       value),
           "leave it out, or check the answer for it");
  const auto divisor = static_cast<uint64_t>(value);
  if (remainders_of(divisor) > kMostRemainders)
    refuse(path,
           fmt::format("multipleOf is {}, whose multiples take {} states, {} are the most", divisor,
                       remainders_of(divisor), kMostRemainders),
           "take one up to 256, or one with more factors of 2 and 5, or check the answer for it");
  to.divisor = divisor;
}

}  // namespace

bool whole_multiples(const Json& schema) {
  const auto found = schema.find("multipleOf");
  return found != schema.end() &&
         (!found->is_number() || found->get<double>() == std::floor(found->get<double>()));
}

NumberBounds number_bounds(const Json& schema, const std::string& path, bool whole) {
  NumberBounds made;
  set_divisor(schema, path, whole, made);
  const auto read = [&](const char* name, bool lower, bool excludes) {
    const auto found = schema.find(name);
    if (found == schema.end()) return;
    if (!found->is_number()) refuse(path, fmt::format("{} is no number", name));
    double value = found->get<double>();
    bool open = excludes;
    if (value != std::floor(value)) {
      if (!whole)
        refuse(path,
               fmt::format("{} of a number is {}, only whole bounds are supported", name, value));
      value = lower ? std::ceil(value) : std::floor(value);
      open = false;
    }
    value = std::clamp(value, -1e18, 1e18);
    const auto bound = static_cast<int64_t>(value);
    auto& to = lower ? made.least : made.most;
    bool& is_open = lower ? made.above_least : made.below_most;
    const bool tighter = !to || (lower ? bound > *to : bound < *to) || (bound == *to && open);
    if (!tighter) return;
    to = bound;
    is_open = open;
  };
  read("minimum", true, false);
  read("exclusiveMinimum", true, true);
  read("maximum", false, false);
  read("exclusiveMaximum", false, true);
  if (made.least && made.most && *made.least > *made.most)
    refuse(path, "has a minimum above its maximum");
  return made;
}

}  // namespace mulciber
