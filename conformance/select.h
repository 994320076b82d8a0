// Selects the cases of a list that run.
#pragma once

#include <istream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mulciber::conformance {

struct SuiteCase;

/// Part `index` of `count`: every count-th case. The parts of a list are disjoint and together make
/// the list.
struct Fraction {
  size_t index = 0, count = 1;
};

/// "1,4" is the second of four parts. Throws ModelError.
Fraction parse_fraction(const std::string& text);

struct SelectionRule {
  /// Globs over names, where * matches dots too; one must match. Empty: all match.
  std::vector<std::string> filters;
  std::vector<std::string> excludes;                 // none of these may match
  std::optional<std::vector<std::string>> caselist;  // only these names
  bool must_pass = false;                            // the short list only
  Fraction fraction;                                 // applied after the other rules
};

/// The rule as options of `mulciber conform`, without --caselist, whose names are not kept:
/// "--mustpass --fraction 0,8".
std::string to_options(const SelectionRule& rule);

/// Reads names, one per line; empty lines and comments after # are skipped.
std::vector<std::string> read_caselist(std::istream& in);

/// The cases that a rule selects, in the order of `cases`. Throws ModelError for a name of the
/// caselist that is not a case.
std::vector<const SuiteCase*> select_cases(const std::vector<const SuiteCase*>& cases,
                                           const SelectionRule& rule);

/// Matches a shell glob against a whole name.
bool matches(const std::string& glob, const std::string& name);

}  // namespace mulciber::conformance
