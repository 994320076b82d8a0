#include <vector>

#include "tests/conformance_rows.h"

// All ops that have no test program of their own: norms, softmax, embedding, elementwise, search,
// sampling, recurrence, experts, and any op added later.
TEST_CASE("Every row of every other op meets its reference") {
  using namespace mulciber;
  std::vector<Op> others;
  for (Op op : kAllOps) {
    if (!std::ranges::count(tests::kMatmulOps, op) && !std::ranges::count(tests::kAttentionOps, op))
      others.push_back(op);
  }
  tests::check_rows(others);
}
