// Writes a run as JUnit XML, which CI servers show: a test suite per op, a test case per case.
#pragma once

#include <string>

#include "conformance/records/record.h"

namespace mulciber::conformance {

/// Fail and Flaky are failures; NotSupported and Waiver are skipped; Pass and QualityWarning pass,
/// the latter with a message on standard output. All other statuses are errors, and so is a run
/// that did not reach its end. Each suite has the fingerprint as properties.
std::string to_junit(const RunRecord& run);

}  // namespace mulciber::conformance
