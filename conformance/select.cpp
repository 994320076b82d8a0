#include "conformance/select.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <charconv>
#include <unordered_set>

#include "conformance/suite.h"
#include "mulciber/error.h"

namespace mulciber::conformance {

bool matches(const std::string& glob, const std::string& name) {
  return fnmatch(glob.c_str(), name.c_str(), 0) == 0;
}

Fraction parse_fraction(const std::string& text) {
  Fraction fraction;
  const char* const end = text.data() + text.size();
  const auto index = std::from_chars(text.data(), end, fraction.index);
  bool good = index.ec == std::errc() && index.ptr != end && *index.ptr == ',';
  if (good) {
    const auto count = std::from_chars(index.ptr + 1, end, fraction.count);
    good = count.ec == std::errc() && count.ptr == end && fraction.index < fraction.count;
  }
  if (!good) {
    throw SettingError("fraction", fmt::format("'{}' is no part of a whole", text),
                       "give I,N with I from 0 to N-1: 0,4 is the first of four parts");
  }
  return fraction;
}

std::string to_options(const SelectionRule& rule) {
  std::string text;
  if (rule.must_pass) text += " --mustpass";
  if (rule.caselist) text += fmt::format(" --caselist FILE of {} names", rule.caselist->size());
  for (const std::string& glob : rule.filters) text += fmt::format(" --filter '{}'", glob);
  for (const std::string& glob : rule.excludes) text += fmt::format(" --exclude '{}'", glob);
  if (rule.fraction.count > 1)
    text += fmt::format(" --fraction {},{}", rule.fraction.index, rule.fraction.count);
  return text.empty() ? text : text.substr(1);
}

std::vector<std::string> read_caselist(std::istream& in) {
  std::vector<std::string> names;
  std::string line;
  while (std::getline(in, line)) {
    line = line.substr(0, line.find('#'));
    const size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string::npos) continue;
    names.push_back(line.substr(first, line.find_last_not_of(" \t\r") - first + 1));
  }
  return names;
}

std::vector<const SuiteCase*> select_cases(const std::vector<const SuiteCase*>& cases,
                                           const SelectionRule& rule) {
  std::unordered_set<std::string> listed;
  if (rule.caselist) {
    listed.insert(rule.caselist->begin(), rule.caselist->end());
    std::unordered_set<std::string> unknown = listed;
    for (const SuiteCase* c : cases) unknown.erase(c->name);
    if (!unknown.empty()) {
      throw SettingError(
          "caselist",
          fmt::format("no case '{}'{}", *std::min_element(unknown.begin(), unknown.end()),
                      unknown.size() > 1 ? fmt::format(" and {} more", unknown.size() - 1) : ""),
          "`mulciber conform` lists the names of all cases");
    }
  }
  auto any_matches = [](const std::vector<std::string>& globs, const std::string& name) {
    return std::any_of(globs.begin(), globs.end(),
                       [&](const std::string& glob) { return matches(glob, name); });
  };
  std::vector<const SuiteCase*> selected;
  size_t place = 0;
  for (const SuiteCase* c : cases) {
    if (rule.must_pass && !c->must_pass) continue;
    if (rule.caselist && !listed.contains(c->name)) continue;
    if (!rule.filters.empty() && !any_matches(rule.filters, c->name)) continue;
    if (any_matches(rule.excludes, c->name)) continue;
    if (place++ % rule.fraction.count == rule.fraction.index) selected.push_back(c);
  }
  return selected;
}

}  // namespace mulciber::conformance
