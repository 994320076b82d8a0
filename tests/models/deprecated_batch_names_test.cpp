// Deprecated names of structures about batches: each is the name that replaced it.
#include <type_traits>

#include "mulciber/batch_generator.h"
#include "mulciber/text_encoder.h"
#include "tests/catch.h"

using namespace mulciber;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

TEST_CASE("Deprecated names about batches are those that replaced them") {
  CHECK(std::is_same_v<BatchOptions, TextBatchOptions>);
  CHECK(std::is_same_v<BatchStatistics, BatchGeneratorStatistics>);
}

#pragma GCC diagnostic pop
