#include "text/grammar/string_formats.h"

#include <fmt/format.h>

namespace mulciber {
namespace {

/// Dates that exist in every year: no 29th of February.
constexpr const char* kDate =
    "[1-9]\\d{3}-((0[13578]|1[02])-(0[1-9]|[12]\\d|3[01])|(0[469]|11)-(0[1-9]|[12]\\d|30)"
    "|02-(0[1-9]|1\\d|2[0-8]))";
constexpr const char* kTime =
    "([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,9})?(Z|[+-]([01]\\d|2[0-3]):[0-5]\\d)";
// Units follow each other without a gap; weeks are used alone (RFC 3339, appendix A).
constexpr const char* kTimeSpan = "T(NH(NM(NS)?)?|NM(NS)?|NS)";
constexpr const char* kDateSpan = "(NY(NM(ND)?)?|NM(ND)?|ND)";
constexpr const char* kByte = "(25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)";
// At most 6 labels of 32 characters, of the 253 characters that are valid.
constexpr const char* kLabel = "[A-Za-z0-9]([A-Za-z0-9-]{0,30}[A-Za-z0-9])?";
constexpr const char* kMailbox = "[A-Za-z0-9_+-]{1,30}(\\.[A-Za-z0-9_+-]{1,15}){0,2}";

/// Replaces N by a number.
std::string spans(std::string pattern) {
  for (size_t at; (at = pattern.find('N')) != std::string::npos;)
    pattern.replace(at, 1, "\\d{1,4}");
  return pattern;
}

/// Eight groups, or fewer with one gap.
std::string ipv6() {
  const std::string group = "[0-9a-f]{1,4}";
  std::string all = fmt::format("({}:){{7}}{}|::", group, group);
  for (int before = 1; before < 7; ++before)
    all += fmt::format("|({}:){{{}}}(:{}){{1,{}}}", group, before, group, 7 - before);
  all += fmt::format("|({}:){{1,7}}:", group);
  return all + fmt::format("|:(:{}){{1,7}}", group);
}

}  // namespace

const std::map<std::string, std::string>& string_formats() {
  static const std::map<std::string, std::string> formats = [] {
    const std::string host = fmt::format("{}(\\.{}){{0,5}}", kLabel, kLabel);
    const std::string date_span = spans(kDateSpan), time_span = spans(kTimeSpan);
    return std::map<std::string, std::string>{
        {"date", kDate},
        {"time", kTime},
        {"date-time", fmt::format("{}T{}", kDate, kTime)},
        {"duration", fmt::format("P({}({})?|{}|{})", date_span, time_span, time_span, spans("NW"))},
        {"uuid", "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"},
        {"hostname", host},
        {"email", fmt::format("{}@{}(\\.{}){{1,5}}", kMailbox, kLabel, kLabel)},
        {"ipv4", fmt::format("{}(\\.{}){{3}}", kByte, kByte)},
        {"ipv6", ipv6()},
        {"uri", fmt::format("https?://{}(:[1-9]\\d{{0,3}})?(/[A-Za-z0-9._~-]{{1,60}}){{0,6}}/?"
                            "(\\?[A-Za-z0-9=&._~-]{{1,60}})?(#[A-Za-z0-9._~-]{{1,60}})?",
                            host)}};
  }();
  return formats;
}

}  // namespace mulciber
