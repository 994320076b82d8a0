#include "conformance/report/html.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/html_template.h"
#include "conformance/records/verdict.h"
#include "runtime/kernel.h"

namespace mulciber::conformance {
namespace {

const char* const kPage =
#include "report/page/page.html.inc"
    ;
const char* const kStyle =
#include "report/page/page.css.inc"
    ;
const char* const kScript =
#include "report/page/page.js.inc"
    ;

std::string html_escaped(const std::string& text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

/// The lines of a run, like in its file.
std::string lines_of(const RunRecord& run) {
  std::string lines = to_line(run.fingerprint) + '\n';
  for (const CaseRecord& record : run.cases) lines += to_line(record) + '\n';
  if (run.complete) lines += summary_line(run.cases, 0) + '\n';
  return json_for_script(lines);
}

std::string meta() {
  nlohmann::json statuses = nlohmann::json::array(), ops = nlohmann::json::object();
  for (int i = 0; i < kStatusCount; ++i) {
    const Status status = static_cast<Status>(i);
    statuses.push_back(
        {{"name", name_of(status)}, {"good", is_good(status)}, {"meaning", meaning_of(status)}});
  }
  for (const Kernel& row : kernels()) ops[name_of(row.op)] = summary_of(row.op);
  return json_for_script(nlohmann::json{{"statuses", statuses}, {"ops", ops}}.dump());
}

const char* tone_name(Tone tone) {
  switch (tone) {
    case Tone::kGood: return "good";
    case Tone::kBad: return "bad";
    case Tone::kUnknown: return "unknown";
  }
  return "";
}

}  // namespace

std::string to_html(const RunRecord& run, const RunRecord* other) {
  const RunVerdict verdict = verdict_of(run);
  const TemplateText texts[] = {{"STYLE", kStyle},
                                {"SCRIPT", kScript},
                                {"TITLE", html_escaped(title_of(run.fingerprint))},
                                {"TONE", tone_name(verdict.tone)},
                                {"VERDICT", html_escaped(verdict.sentence)},
                                {"META", meta()},
                                {"RUN", lines_of(run)},
                                {"OTHER", other ? lines_of(*other) : ""}};
  return fill_template(kPage, texts);
}

}  // namespace mulciber::conformance
