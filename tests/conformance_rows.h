// Checks every row of some ops that the device can run, in every case, against the double-precision
// reference.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <span>
#include <string>

#include "conformance/suite.h"
#include "runtime/op.h"
#include "tests/catch.h"
#include "tests/device.h"

namespace mulciber::tests {

/// MULCIBER_CASE_STEP=N takes every N-th case only: for runs that check paths (validation,
/// sanitizers, masks), not numbers.
inline size_t case_step() {
  const char* text = std::getenv("MULCIBER_CASE_STEP");
  return text && std::atoi(text) > 0 ? static_cast<size_t>(std::atoi(text)) : 1;
}

/// Ops that have test programs of their own (conformance_matmul_test, conformance_attention_test);
/// conformance_rowwise_test has all others of shaders/ops.def.
constexpr Op kMatmulOps[] = {Op::kMatmul};
constexpr Op kAttentionOps[] = {Op::kAttention, Op::kAttentionMap, Op::kAppendCache,
                                Op::kCopyColumns, Op::kRopeAppend};

/// A row on matrix units that a device cannot run is tested in its plain form, the next row, on
/// every device with room for its tiles.
inline void check_plain_form(const Kernel& row, const Capabilities& device) {
  if ((row.needs & kMatrixUnits) == 0) return;
  if (device.max_invocations < 256 || device.max_shared_memory < 32768) return;
  const Kernel& plain = *(&row + 1);
  INFO(plain.id << " instead of " << row.id);
  CHECK(why_not_runnable(plain, device) == "");
}

inline void check_rows(std::span<const Op> ops) {
  using namespace conformance;
  Device& device = shared_device();
  const RunOptions options{.repeats = 1};
  for (const Kernel& row : kernels()) {
    if (std::find(ops.begin(), ops.end(), row.op) == ops.end()) continue;
    DYNAMIC_SECTION(row.id) {
      std::string reason = why_not_runnable(row, device.capabilities());
      if (!reason.empty()) {
        check_plain_form(row, device.capabilities());
        WARN("skipped: " << row.id << " (" << reason << ")");
        continue;
      }
      size_t ran = 0, index = 0;
      for (const SuiteCase& c : suite()) {
        if (c.row != row.id || index++ % case_step() != 0) continue;
        CaseResult result = c.run(device, options);
        if (result.status == Status::kNotSupported) continue;
        ++ran;
        INFO(c.name << " on " << device.capabilities().name << ": " << name_of(result.status)
                    << ", " << result.detail);
        CHECK(result.status == Status::kPass);
      }
      INFO(row.id);
      CHECK(ran > 0);
    }
  }
}

}  // namespace mulciber::tests
