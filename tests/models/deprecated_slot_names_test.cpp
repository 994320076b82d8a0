// Deprecated names of slots: each is the name that replaced it.
#include "mulciber/batch_translator.h"
#include "tests/catch.h"

using namespace mulciber;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

TEST_CASE("Deprecated names of slots are those that replaced them") {
  BatchTranslatorOptions options;
  CHECK(options.places == options.slots);
  options.places = 3;
  CHECK(options.slots == 3);
  BatchTranslatorStatistics statistics;
  statistics.sequence_steps = 4;
  CHECK(statistics.text_steps == 4);
}

#pragma GCC diagnostic pop
