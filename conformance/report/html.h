// Writes a run, or two for comparison, as one HTML page that needs no other file and no network.
#pragma once

#include <string>

#include "conformance/records/record.h"

namespace mulciber::conformance {

/// `other`: an earlier run to compare with, or null. A reader of the page can also load one later.
std::string to_html(const RunRecord& run, const RunRecord* other = nullptr);

}  // namespace mulciber::conformance
