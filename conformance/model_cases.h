// The bundled model as a whole: logits and translations against a double-precision transformer.
#pragma once

#include <vector>

#include "conformance/suite.h"

namespace mulciber::conformance {

/// "mulciber.model.en_de.*". NotSupported where the model is not beside the program
/// (share/mulciber/en-de, or assets/en-de in a source tree).
std::vector<SuiteCase> model_cases();

}  // namespace mulciber::conformance
