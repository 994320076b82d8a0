// The table of several runs, docs/reference/conformance-results.md.
#include "conformance/report/matrix.h"
#include "tests/catch.h"

using namespace mulciber;
using namespace mulciber::conformance;
using Catch::Matchers::ContainsSubstring;

namespace {

RunRecord run_of(std::string driver, std::string subgroups, std::string limits = "") {
  RunRecord run;
  run.fingerprint.driver_name = std::move(driver);
  run.fingerprint.driver_version = "1.2.3";
  run.fingerprint.limits = std::move(limits);
  run.fingerprint.device_limits = {{"subgroupSize", std::move(subgroups)}};
  run.fingerprint.repeats = 20;
  run.complete = true;
  return run;
}

void add(RunRecord& run, const std::string& op, Status status, int count = 1) {
  for (int i = 0; i < count; ++i) {
    CaseRecord record;
    record.name = "mulciber." + op + ".row.m" + std::to_string(run.cases.size());
    record.op = op;
    record.result.status = status;
    record.result.detail = "why";
    record.result.seconds = 0.5;
    run.cases.push_back(record);
  }
}

}  // namespace

TEST_CASE("The matrix counts each status in its column, and names what failed") {
  RunRecord run = run_of("a driver", "8");
  run.fingerprint.selection = "--mustpass";
  run.fingerprint.shake = "some";
  add(run, "matmul", Status::kPass, 1234);
  add(run, "matmul", Status::kFail);
  add(run, "matmul", Status::kTimeout);
  add(run, "softmax", Status::kWaiver, 2);
  add(run, "softmax", Status::kQualityWarning);
  add(run, "softmax", Status::kNotSupported, 7);
  RunRecord stopped = run_of("another driver", "4");
  add(stopped, "softmax", Status::kPass);
  stopped.complete = false;

  const std::string text = matrix_markdown({run, stopped}, 2000, "- a finding\n");
  CHECK_THAT(text, ContainsSubstring("| a driver 1.2.3 | 1,234 | 2 | 2 | 1 | 7 | 21 |"));
  CHECK_THAT(text,
             ContainsSubstring(
                 "| another driver 1.2.3 (stopped before its end) | 1 | 0 | 0 | 0 | 0 | 21 |"));
  CHECK_THAT(text, ContainsSubstring("| operation | a driver 1.2.3 | another driver 1.2.3 |"));
  CHECK_THAT(text, ContainsSubstring("| matmul | **2 failed**, 1,234 |  |"));
  CHECK_THAT(text, ContainsSubstring("| softmax | 0, 2 known, 1 poor, 7 not run | 1 |"));
  CHECK_THAT(text, ContainsSubstring("- Timeout `mulciber.matmul.row.m1235`: why"));
  CHECK_THAT(text, ContainsSubstring("mulciber conform --repeat 20 --mustpass\n"));
  CHECK_THAT(text, ContainsSubstring("1,246 of the suite's 2,000 cases.\n"));
  CHECK_THAT(text, ContainsSubstring("## Faults found in drivers\n\n- a finding"));
  CHECK_THAT(matrix_markdown({run}, 2000, ""), !ContainsSubstring("## Faults found"));
}

TEST_CASE("Runs of one driver with other subgroups have other labels") {
  const std::string text = matrix_markdown(
      {run_of("llvmpipe", "8"), run_of("llvmpipe", "16"), run_of("other", "4", "no-fp16")}, 2000,
      "");
  CHECK_THAT(text, ContainsSubstring("### llvmpipe 1.2.3, subgroups of 8\n"));
  CHECK_THAT(text, ContainsSubstring("### llvmpipe 1.2.3, subgroups of 16\n"));
  CHECK_THAT(text, ContainsSubstring("### other 1.2.3 with `no-fp16`\n"));
  RunRecord validated = run_of("other", "4");
  validated.fingerprint.validated = true;
  CHECK_THAT(matrix_markdown({validated}, 0, ""),
             ContainsSubstring("### other 1.2.3 under validation\n") &&
                 !ContainsSubstring("of the suite's"));
}
