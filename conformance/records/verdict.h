// Describes a run in words, for all reports.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "conformance/records/record.h"

namespace mulciber::conformance {

enum class Tone { kGood, kBad, kUnknown };

struct RunVerdict {
  Tone tone;
  std::string sentence;  // for a reader who knows Vulkan but not this suite
};
RunVerdict verdict_of(const RunRecord& run);

/// "llvmpipe, Mesa 22.3.6 (LLVM 15.0.6)": the driver, and the masks, if any.
std::string title_of(const Fingerprint& fingerprint);
/// The facts of a fingerprint by name, in a readable order, without the hashes of single rows.
std::vector<std::pair<std::string, std::string>> facts_of(const Fingerprint& fingerprint);
/// Formats 5625 as "5,625".
std::string with_commas(size_t number);

}  // namespace mulciber::conformance
