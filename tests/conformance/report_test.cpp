// The reports of a run: its verdict in words, JUnit, the page.
#include <regex>
#include <stdexcept>

#include "base/html_template.h"
#include "conformance/records/verdict.h"
#include "conformance/report/html.h"
#include "conformance/report/junit.h"
#include "tests/catch.h"

using namespace mulciber;
using namespace mulciber::conformance;

namespace {

CaseRecord report_record(const std::string& name, const std::string& op, Status status,
                         const std::string& detail = "") {
  CaseRecord r;
  r.name = name;
  r.op = op;
  r.row = "row";
  r.types = "f32";
  r.result = {status, detail, 0.25, 1e-12, 21, 0.5};
  return r;
}

RunRecord one_of_each() {
  RunRecord run;
  run.fingerprint.driver_name = "a <driver> & \"more\"";
  run.fingerprint.driver_info = "1.2";
  run.complete = true;
  for (int i = 0; i < kStatusCount; ++i) {
    const Status status = static_cast<Status>(i);
    run.cases.push_back(report_record("mulciber.matmul.tiled_f32.m" + std::to_string(i),
                                      i % 2 ? "matmul" : "softmax", status,
                                      status == Status::kPass ? "" : "</script> \x01 & \xff"));
  }
  return run;
}

size_t count_in_report(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("The verdict says what went wrong, and where") {
  RunRecord run = one_of_each();
  const RunVerdict bad = verdict_of(run);
  CHECK(bad.tone == Tone::kBad);
  CHECK(bad.sentence.find("matmul and softmax") != std::string::npos);
  CHECK(bad.sentence.find("8 of the 11 cases") != std::string::npos);
  CHECK(bad.sentence.find("1 crash") != std::string::npos);

  std::erase_if(run.cases, [](const CaseRecord& r) { return !is_good(r.result.status); });
  const RunVerdict good = verdict_of(run);
  CHECK(good.tone == Tone::kGood);
  CHECK(good.sentence.find("2 of the 3 cases") != std::string::npos);
  run.complete = false;
  CHECK(verdict_of(run).tone == Tone::kUnknown);
  CHECK(verdict_of(run).sentence.find("stopped") != std::string::npos);

  std::erase_if(run.cases,
                [](const CaseRecord& r) { return r.result.status != Status::kNotSupported; });
  CHECK(verdict_of(run).sentence.find("Nothing was tested") != std::string::npos);
  CHECK(with_commas(5) == "5");
  CHECK(with_commas(1234567) == "1,234,567");
}

TEST_CASE("JUnit counts every status once") {
  const std::string xml = to_junit(one_of_each());
  CHECK(xml.find("tests=\"12\" failures=\"2\" errors=\"6\" skipped=\"2\"") != std::string::npos);
  CHECK(count_in_report(xml, "<testcase ") == 12);
  CHECK(count_in_report(xml, "<failure ") == 2);
  CHECK(count_in_report(xml, "<error ") == 6);
  CHECK(count_in_report(xml, "<skipped ") == 2);
  CHECK(count_in_report(xml, "<testsuite ") == 2);
  CHECK(count_in_report(xml, "<properties>") == 2);
  CHECK(xml.find("classname=\"mulciber.matmul.tiled_f32\" name=\"m1\"") != std::string::npos);
  // Characters that XML cannot hold are gone, and none that XML escapes is left raw.
  CHECK(xml.find('\x01') == std::string::npos);
  CHECK(xml.find("</script>") == std::string::npos);
  CHECK(xml.find("a &lt;driver&gt; &amp; &quot;more&quot;") != std::string::npos);

  RunRecord stopped = one_of_each();
  stopped.complete = false;
  CHECK(to_junit(stopped).find("type=\"Stopped\"") != std::string::npos);
}

TEST_CASE("The page is whole, and fetches nothing") {
  const RunRecord run = one_of_each();
  const std::string page = to_html(run, &run);
  CHECK(page.find("{{") == std::string::npos);
  CHECK(page.find("a &lt;driver&gt;") != std::string::npos);
  CHECK(page.find("http:") == std::string::npos);
  CHECK(page.find("https:") == std::string::npos);
  // Four scripts: no text of a driver ends one of them, or begins a fifth.
  CHECK(count_in_report(page, "</script") == 4);
  CHECK(count_in_report(page, "<script") == 4);
  CHECK(count_in_report(page, "\"kind\":\"case\"") == 24);
}

TEST_CASE("What is put in place of a mark is not searched for marks") {
  using mulciber::TemplateText;
  const TemplateText texts[] = {{"A", "{{B}}"}, {"B", "b"}};
  CHECK(mulciber::fill_template("<p>{{A}} {{B}}{{B}}</p>", texts) == "<p>{{B}} bb</p>");
  CHECK(mulciber::fill_template("no mark", {}) == "no mark");
  CHECK_THROWS_AS(mulciber::fill_template("{{C}}", texts), std::logic_error);
  CHECK(mulciber::json_for_script("[\"</script>&\\u2028\"]") ==
        "[\"\\u003c/script\\u003e\\u0026\\u2028\"]");
  CHECK(mulciber::json_for_script("\"\xE2\x80\xA9\"") == "\"\\u2029\"");
}
