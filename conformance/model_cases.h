// Cases of the bundled model: logits and translations are compared with a double-precision
// transformer.
#pragma once

#include <vector>

#include "conformance/models_under_test.h"
#include "conformance/suite.h"

namespace mulciber::conformance {

/// "mulciber.model.en_de.*". The cases are NotSupported without the model beside the program.
/// `models` outlives the cases.
std::vector<SuiteCase> model_cases(const ModelsUnderTest& models);

}  // namespace mulciber::conformance
