// The models of this library in the form that the conformance suite needs, and the suite with their
// cases.
#pragma once

#include <vector>

#include "conformance/models_under_test.h"
#include "conformance/suite.h"

namespace mulciber::apps {

const conformance::ModelsUnderTest& models_under_test();

/// The cases of ops and blocks (conformance/suite.h), then those of the bundled model. Made on
/// first use.
const std::vector<conformance::SuiteCase>& suite_with_models();

}  // namespace mulciber::apps
