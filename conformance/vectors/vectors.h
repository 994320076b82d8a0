// Outside vectors: recorded inputs and results in a file, as cases. The format:
// docs/reference/conformance-vectors.md.
#pragma once

#include <filesystem>
#include <vector>

#include "conformance/suite.h"

namespace mulciber::conformance {

/// One case per entry of the file, "mulciber.vectors.NAME"; those that no op serves end as
/// NotSupported with what is missing. path: a .json with a .safetensors of the same stem beside it.
/// Throws ModelError when a file is missing, malformed, or the two do not belong together.
std::vector<SuiteCase> load_vectors(const std::filesystem::path& path);

}  // namespace mulciber::conformance
