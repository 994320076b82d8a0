// Outside vectors: cases from inputs and results recorded in a file. The format:
// docs/reference/conformance-vectors.md.
#pragma once

#include <filesystem>
#include <vector>

#include "conformance/suite.h"

namespace mulciber::conformance {

/// One case per entry of the file, "mulciber.vectors.NAME"; an entry that no op serves ends as
/// NotSupported with the missing feature. path: a .json with a .safetensors of the same stem beside
/// it. Throws ModelError when a file is missing, malformed, or the two do not belong together.
std::vector<SuiteCase> load_vectors(const std::filesystem::path& path);

}  // namespace mulciber::conformance
