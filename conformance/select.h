// Which cases of a list are to run.
#pragma once

#include <istream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mulciber::conformance {

struct SuiteCase;

/// Part `index` of `count`: every count-th case. The parts of a list are disjoint, and together the
/// list.
struct Fraction {
  size_t index = 0, count = 1;
};

/// "1,4" is the second of four parts. Throws ModelError.
Fraction parse_fraction(const std::string& text);

struct SelectionRule {
  /// Globs over names, where * crosses dots; one must match. Empty: all.
  std::vector<std::string> filters;
  std::vector<std::string> excludes;                 // none of these may
  std::optional<std::vector<std::string>> caselist;  // names; others are left out
  bool must_pass = false;                            // the short list only
  Fraction fraction;                                 // of what the others leave
};

/// The rule as options of `mulciber conform`, but for --caselist, whose names are not kept:
/// "--mustpass --fraction 0,8".
std::string to_options(const SelectionRule& rule);

/// Names, one a line; empty lines and what follows # do not count.
std::vector<std::string> read_caselist(std::istream& in);

/// The cases that a rule leaves, in the order of `cases`. Throws ModelError for a name of the
/// caselist that is no case.
std::vector<const SuiteCase*> select_cases(const std::vector<const SuiteCase*>& cases,
                                           const SelectionRule& rule);

/// Shell's glob over a whole name.
bool matches(const std::string& glob, const std::string& name);

}  // namespace mulciber::conformance
