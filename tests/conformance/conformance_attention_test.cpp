#include "tests/conformance_rows.h"

TEST_CASE("Every row of attention meets its reference") {
  mulciber::tests::check_rows(mulciber::tests::kAttentionOps);
}
