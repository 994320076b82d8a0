#include "tests/conformance_rows.h"

TEST_CASE("Every row of the matrix product meets its reference") {
  mulciber::tests::check_rows(mulciber::tests::kMatmulOps);
}
