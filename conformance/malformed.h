// Malformed files as cases: a reader must refuse each with one clear error.
#pragma once

#include <filesystem>
#include <vector>

#include "conformance/models_under_test.h"
#include "conformance/suite.h"

namespace mulciber::conformance {

/// One case per entry of a manifest, "mulciber.malformed.NAME": pass where opening the file ends in
/// a ModelError of two lines at most that names the file, or, where the entry's expectation says
/// "control", in none. `models`, which opens them, outlives the cases. The format:
/// docs/reference/conformance-vectors.md. Throws ModelError when the manifest itself is malformed.
std::vector<SuiteCase> load_malformed(const std::filesystem::path& manifest,
                                      const ModelsUnderTest& models);

}  // namespace mulciber::conformance
