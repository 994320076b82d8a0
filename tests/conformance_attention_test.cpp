#include "runtime/op.h"
#include "tests/conformance_rows.h"

TEST_CASE("Every row of attention meets its reference") {
  using mulciber::Op;
  mulciber::tests::check_rows(
      {Op::kAttention, Op::kAttentionMap, Op::kAppendCache, Op::kCopyColumns, Op::kRopeAppend});
}
