// Deprecated names of completions: each is the name that replaced it.
#include "mulciber/batch_generator.h"
#include "tests/catch.h"

using namespace mulciber;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

TEST_CASE("Deprecated names of completions are those that replaced them") {
  BatchRequest request;
  CHECK_FALSE(request.reuse_answers);
  request.reuse_answers = true;
  CHECK(request.reuse_completions);
}

#pragma GCC diagnostic pop
