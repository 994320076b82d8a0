#include "conformance/report/junit.h"

#include <fmt/format.h>

#include <vector>

#include "conformance/records/verdict.h"

namespace mulciber::conformance {
namespace {

/// Escapes an attribute or text. XML 1.0 cannot represent most control characters.
std::string xml_escaped(const std::string& text) {
  std::string out;
  for (unsigned char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\n': out += "&#10;"; break;
      case '\t': out += "&#9;"; break;
      // A driver's message need not be UTF-8, but the file must be.
      default: out += c < ' ' || c >= 127 ? '?' : static_cast<char>(c);
    }
  }
  return out;
}

enum class Outcome { kPassed, kFailure, kError, kSkipped };

Outcome outcome_of(Status status) {
  switch (status) {
    case Status::kPass:
    case Status::kQualityWarning: return Outcome::kPassed;
    case Status::kFail:
    case Status::kFlaky: return Outcome::kFailure;
    case Status::kNotSupported:
    case Status::kWaiver: return Outcome::kSkipped;
    default: return Outcome::kError;
  }
}

struct Suite {
  std::string op, cases;
  size_t tests = 0, failures = 0, errors = 0, skipped = 0;
  double seconds = 0;

  void add(const std::string& class_name, const std::string& name, double time, Outcome outcome,
           const char* type, const std::string& message) {
    ++tests;
    seconds += time;
    cases += fmt::format("    <testcase classname=\"{}\" name=\"{}\" time=\"{:.6f}\"",
                         xml_escaped(class_name), xml_escaped(name), time);
    if (outcome == Outcome::kPassed && message.empty()) {
      cases += "/>\n";
      return;
    }
    cases += ">\n";
    const std::string text = xml_escaped(message);
    switch (outcome) {
      case Outcome::kPassed:
        cases += fmt::format("      <system-out>{}</system-out>\n", text);
        break;
      case Outcome::kSkipped:
        ++skipped;
        cases += fmt::format("      <skipped message=\"{}\"/>\n", text);
        break;
      case Outcome::kFailure:
        ++failures;
        cases += fmt::format("      <failure type=\"{}\" message=\"{}\">{}</failure>\n", type, text,
                             text);
        break;
      case Outcome::kError:
        ++errors;
        cases +=
            fmt::format("      <error type=\"{}\" message=\"{}\">{}</error>\n", type, text, text);
        break;
    }
    cases += "    </testcase>\n";
  }
  std::string counts() const {
    return fmt::format("tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{:.3f}\"",
                       tests, failures, errors, skipped, seconds);
  }
};

void add_case(Suite& suite, const CaseRecord& record) {
  // "mulciber.matmul.tiled_f32" and "m33_n64_k130.bias".
  size_t dot = record.name.find('.');
  for (int i = 0; i < 2 && dot != std::string::npos; ++i) dot = record.name.find('.', dot + 1);
  const bool parted = dot != std::string::npos;
  const CaseResult& result = record.result;
  const Outcome outcome = outcome_of(result.status);
  std::string message;
  if (result.status != Status::kPass) {
    message = fmt::format("{}{}{}", name_of(result.status), result.detail.empty() ? "" : ": ",
                          result.detail);
    if (!record.waived.empty())
      message += fmt::format(" ({} waived: {})", name_of(record.waived_from), record.waived);
  }
  suite.add(parted ? record.name.substr(0, dot) : "mulciber",
            parted ? record.name.substr(dot + 1) : record.name, result.seconds, outcome,
            name_of(result.status), message);
}

}  // namespace

std::string to_junit(const RunRecord& run) {
  std::vector<Suite> suites;  // in the order in which their ops occurred
  for (const CaseRecord& record : run.cases) {
    auto suite = suites.begin();
    while (suite != suites.end() && suite->op != record.op) ++suite;
    if (suite == suites.end()) suite = suites.insert(suites.end(), Suite{.op = record.op});
    add_case(*suite, record);
  }
  if (!run.complete) {
    Suite stopped{.op = "run"};
    stopped.add("mulciber.run", "comes_to_its_end", 0, Outcome::kError, "Stopped",
                fmt::format("the run was stopped after {} cases", run.cases.size()));
    suites.push_back(stopped);
  }
  std::string properties = "    <properties>\n";
  for (const auto& [name, value] : facts_of(run.fingerprint)) {
    properties += fmt::format("      <property name=\"{}\" value=\"{}\"/>\n", xml_escaped(name),
                              xml_escaped(value));
  }
  properties += "    </properties>\n";

  Suite all;
  std::string body;
  for (const Suite& suite : suites) {
    all.tests += suite.tests;
    all.failures += suite.failures;
    all.errors += suite.errors;
    all.skipped += suite.skipped;
    all.seconds += suite.seconds;
    body +=
        fmt::format("  <testsuite name=\"mulciber.{}\" {} timestamp=\"{}\">\n{}{}  </testsuite>\n",
                    xml_escaped(suite.op), suite.counts(), xml_escaped(run.fingerprint.started),
                    properties, suite.cases);
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"mulciber conform\" "
      "{}>\n{}</testsuites>\n",
      all.counts(), body);
}

}  // namespace mulciber::conformance
