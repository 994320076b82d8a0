// Checks of a verification's report.
#pragma once

#include "models/loading/verify.h"
#include "tests/catch.h"

namespace mulciber::tests {

/// Checks that every result passes, and that there are at least so many.
inline void check_report(const VerifyReport& report, size_t least = 6) {
  for (const VerifyResult& result : report.results) {
    INFO(result.case_name << " " << result.tensor << ": error " << result.error << ", tolerance "
                          << result.tolerance << " " << result.detail);
    CHECK(result.status == VerifyResult::Status::kPass);
  }
  CHECK(report.results.size() >= least);
}

}  // namespace mulciber::tests
