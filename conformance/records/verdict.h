// A run in words: what every report says of it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "conformance/records/record.h"

namespace mulciber::conformance {

enum class Tone { kGood, kBad, kUnknown };

struct RunVerdict {
  Tone tone;
  std::string sentence;  // for somebody who knows Vulkan, and nothing of this suite
};
RunVerdict verdict_of(const RunRecord& run);

/// "llvmpipe, Mesa 22.3.6 (LLVM 15.0.6)": the driver, and the masks where there are any.
std::string title_of(const Fingerprint& fingerprint);
/// What there is to tell of a fingerprint, by name, in the order in which a person wants to read
/// it. Without the hashes of single rows.
std::vector<std::pair<std::string, std::string>> facts_of(const Fingerprint& fingerprint);
/// 5625 is "5,625".
std::string with_commas(size_t number);

}  // namespace mulciber::conformance
