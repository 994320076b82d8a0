// The ops of shaders/ops.def, and the facts about a problem that rows of kernels.def may require.
// Layers and models do not include it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mulciber {

enum class Op : uint8_t {
#define OP(ENUMERATOR, NAME, SUMMARY) k##ENUMERATOR,
#include "shaders/ops.def"
};

/// Every op, in the order of ops.def.
constexpr Op kAllOps[] = {
#define OP(ENUMERATOR, NAME, SUMMARY) Op::k##ENUMERATOR,
#include "shaders/ops.def"
};

/// The extents of an op's problems, where measurement chooses its rows (shaders/ops.def).
struct MeasuredOp {
  Op op;
  size_t extents;   // number of extents
  size_t changing;  // the first `changing` extents change from program to program
  size_t pass;      // index of the extent that a shorter pass over a prompt reduces, or kNoPass
};
constexpr size_t kNoPass = SIZE_MAX;
constexpr MeasuredOp kMeasuredOps[] = {
#define MEASURED(ENUMERATOR, EXTENTS, CHANGING, PASS) {Op::k##ENUMERATOR, EXTENTS, CHANGING, PASS},
#include "shaders/ops.def"
};
/// Null where no rows of the op are chosen by measurement.
constexpr const MeasuredOp* measured(Op op) {
  for (const MeasuredOp& one : kMeasuredOps) {
    if (one.op == op) return &one;
  }
  return nullptr;
}

/// Facts about a problem that a row may require, as bits; each op computes its own.
enum ShapeFact : uint32_t {
  kAnyShape = 0,
  kRowsAtMost8 = 1u << 0,       // matmul: M <= 8
  kRowsAbove8 = 1u << 1,        // matmul: M > 8; experts: several tokens for each
  kDepthMultipleOf4 = 1u << 2,  // K (matmul) or head size (attention)
  kDepthMultipleOf8 = 1u << 3,
  kDepthMultipleOf16 = 1u << 4,
  kDepthMultipleOf32 = 1u << 5,
  kColumnsMultipleOf4 = 1u << 6,  // N (matmul) or row length (norm, softmax)
  kColumnsMultipleOf8 = 1u << 7,
  kColumnsMultipleOf16 = 1u << 8,
  kHeadSizeAtMost64 = 1u << 9,
  kHeadSizeAtMost128 = 1u << 10,
  kOneQuery = 1u << 11,  // attention: one position and one head per key head
  kManyQueries =
      1u << 12,  // attention: 8 queries or more per key head, counted over its query heads
  kRowsMultipleOf16 = 1u << 13,
  kNoAncestry = 1u << 14,  // attention: keys of a row lie in that row (no beam indirection)
  kDepthMultipleOf64 = 1u << 15,
  kColumnsAtLeast256 = 1u << 16,
  kFewBanned = 1u << 17,    // top_k: room for at most 64 banned ids
  kRowsAbove64 = 1u << 18,  // matmul: M > 64
  kOneRow = 1u << 19,       // matmul: M == 1
  kColumnsAtMost1024 = 1u << 20,
  kQueriesAtLeast32 = 1u << 21,  // attention: counted like kManyQueries
  kManyPositions = 1u << 22,     // attention: 8 positions or more, however many heads share keys
  kSplitKeys = 1u << 23,       // attention: one position of few rows, whose many keys may be split
  kContiguousKeys = 1u << 24,  // attention: the keys of a query are consecutive
  kFewKeyHeads = 1u << 26,     // attention: at most 4 pairs of a key head and a row of keys
  kWholeTiles = 1u << 25,      // attention: 16 consecutive queries share one list of keys
  kScaledProducts = 1u << 27,  // attention: weights are a softmax of scaled products alone
  kHeadSizeAtMost640 = 1u << 28,  // attention: head size of keys at most 640, of values at most 512
};

}  // namespace mulciber
