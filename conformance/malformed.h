// Cases of malformed files: a reader must refuse each with one clear error.
#pragma once

#include <filesystem>
#include <vector>

#include "conformance/models_under_test.h"
#include "conformance/suite.h"

namespace mulciber::conformance {

/// One case per entry of a manifest, "mulciber.malformed.NAME". A case passes where opening the
/// file throws a ModelError of at most two lines that names the file, or, where the entry expects
/// "control", throws nothing. `models` opens the files and must outlive the cases. The format:
/// docs/reference/conformance-vectors.md. Throws ModelError when the manifest itself is malformed.
std::vector<SuiteCase> load_malformed(const std::filesystem::path& manifest,
                                      const ModelsUnderTest& models);

}  // namespace mulciber::conformance
