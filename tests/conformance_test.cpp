// Every row that the device can run, over every case of its op, against the double-precision reference.
#include "conformance/op_case.h"
#include "tests/catch.h"
#include "tests/device.h"

using namespace mulciber;
using namespace mulciber::conformance;

TEST_CASE("Every kernel row meets its reference on every sample") {
  Device& device = tests::shared_device();
  for (const Kernel& row : kernels()) {
    DYNAMIC_SECTION(row.id) {
      std::string reason = why_not_runnable(row, device.capabilities());
      if (!reason.empty()) {
        WARN("skipped: " << row.id << " (" << reason << ")");
        continue;
      }
      size_t ran = 0;
      for (const OpCases* cases : all_op_cases()) {
        if (cases->op() != row.op) continue;
        std::mt19937 random(1234);
        for (const OpCase& op_case : cases->samples(row.types, random)) {
          CaseResult result = run_case(device, op_case, row);
          if (result.verdict == Verdict::kNotSupported) continue;
          ++ran;
          INFO(row.id << " " << op_case.name << " on " << device.capabilities().name << ": " << result.detail);
          CHECK(result.verdict == Verdict::kPass);
        }
      }
      INFO(row.id);
      CHECK(ran > 0);
    }
  }
}
