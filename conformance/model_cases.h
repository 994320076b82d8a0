// The bundled model as a whole: logits and translations against a double-precision transformer.
#pragma once

#include <vector>

#include "conformance/models_under_test.h"
#include "conformance/suite.h"

namespace mulciber::conformance {

/// "mulciber.model.en_de.*". NotSupported where the model is not beside the program. `models`
/// outlives the cases.
std::vector<SuiteCase> model_cases(const ModelsUnderTest& models);

}  // namespace mulciber::conformance
