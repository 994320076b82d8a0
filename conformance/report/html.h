// A run, or two to compare, as one HTML page that needs no other file and no network.
#pragma once

#include <string>

#include "conformance/records/record.h"

namespace mulciber::conformance {

/// `other`: a run from before, to compare with; or null. The page lets a person load one later too.
std::string to_html(const RunRecord& run, const RunRecord* other = nullptr);

}  // namespace mulciber::conformance
