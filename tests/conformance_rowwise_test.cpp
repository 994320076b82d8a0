#include "runtime/op.h"
#include "tests/conformance_rows.h"

TEST_CASE(
    "Every row of norms, softmax, embedding, elementwise, search, recurrence and experts meets its "
    "reference") {
  using mulciber::Op;
  mulciber::tests::check_rows({Op::kSoftmax, Op::kLayerNorm, Op::kRmsNorm, Op::kEmbedding,
                               Op::kElementwise, Op::kTopK, Op::kBeamStep, Op::kFollowBeams,
                               Op::kSampleScan, Op::kSampleChoose, Op::kRecurrentCell,
                               Op::kExpertMatmul});
}
