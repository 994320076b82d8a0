// Compares runs on several drivers, as Markdown: docs/reference/conformance-results.md.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "conformance/records/record.h"

namespace mulciber::conformance {

/// suite_cases: number of cases in a whole run. findings: hand-written Markdown about faults found
/// in drivers; or "".
std::string matrix_markdown(const std::vector<RunRecord>& runs, size_t suite_cases,
                            std::string_view findings);

}  // namespace mulciber::conformance
