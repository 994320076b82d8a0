// Every row of some ops that the device can run, over every case, against the double-precision reference.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <initializer_list>

#include "conformance/op_case.h"
#include "tests/catch.h"
#include "tests/device.h"

namespace mulciber::tests {

/// MULCIBER_CASE_STEP=N takes every N-th case only, a different one of each N per row: for runs whose
/// point is not the numbers (validation, sanitizers, masks) but the paths.
inline size_t case_step() {
  const char* text = std::getenv("MULCIBER_CASE_STEP");
  return text && std::atoi(text) > 0 ? static_cast<size_t>(std::atoi(text)) : 1;
}

inline void check_rows(std::initializer_list<Op> ops) {
  using namespace conformance;
  Device& device = shared_device();
  size_t row_index = 0;
  for (const Kernel& row : kernels()) {
    ++row_index;
    if (std::find(ops.begin(), ops.end(), row.op) == ops.end()) continue;
    DYNAMIC_SECTION(row.id) {
      std::string reason = why_not_runnable(row, device.capabilities());
      if (!reason.empty()) {
        WARN("skipped: " << row.id << " (" << reason << ")");
        continue;
      }
      const size_t step = case_step();
      size_t ran = 0, index = 0;
      std::mt19937 random(1234);
      for (const OpCase& op_case : op_cases(row.op).samples(row.types, random)) {
        if (step > 1 && (index++ + row_index) % step != 0) continue;
        CaseResult result = run_case(device, op_case, row);
        if (result.verdict == Verdict::kNotSupported) continue;
        ++ran;
        INFO(row.id << " " << op_case.name << " on " << device.capabilities().name << ": " << result.detail);
        CHECK(result.verdict == Verdict::kPass);
      }
      INFO(row.id);
      if (step == 1) CHECK(ran > 0);
    }
  }
}

}  // namespace mulciber::tests
