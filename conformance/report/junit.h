// A run as JUnit XML, which CI servers show: a test suite per op, a test case per case.
#pragma once

#include <string>

#include "conformance/records/record.h"

namespace mulciber::conformance {

/// Fail and Flaky are failures; NotSupported and Waiver are skipped; Pass and QualityWarning pass,
/// the latter with a word on standard output; all else are errors, as is a run that did not come to
/// its end. The fingerprint is the properties of each suite.
std::string to_junit(const RunRecord& run);

}  // namespace mulciber::conformance
