// One row of x for software drivers: a subgroup takes TILE_N rows of W, its lanes side by side
// along K, so that memory is read in few long runs. A butterfly of shuffles combines the sums and
// halves their number in every step. K is a multiple of 8.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "interface.h"
#include "matmul.h"
#include "types.glsl"
#include "matmul_operands.glsl"

ROW_CONSTANT(TILE_N, 8);  // a power of two, at least 2

const uint PAIRS = TILE_N / 2;
const uint SPAN = SUBGROUP_SIZE * 8;  // along K, per iteration
const uint kMaxSteps = 7;             // steps of a butterfly over up to 128 lanes

#ifdef WEIGHT_HALF
BUFFER(1, readonly, w_wide, uvec4)
#endif

void load_w(uint at, out vec4 first, out vec4 second) {
#ifdef WEIGHT_HALF
  uvec4 wide = AT(w_wide, at / 8);
  first = unpack_weight4(wide.xy);
  second = unpack_weight4(wide.zw);
#else
  first = AT(w, at / 4);
  second = AT(w, at / 4 + 1);
#endif
}

void main() {
  const uint lane = gl_SubgroupInvocationID;
  const uint column0 = gl_WorkGroupID.x * TILE_N;
  const uint row = gl_WorkGroupID.y;

  // Beyond the edge the last column is computed again, and not stored.
  uint w_at[TILE_N];
  [[unroll]] for (uint j = 0; j < TILE_N; ++j) {
    w_at[j] = min(column0 + j, params.columns - 1) * params.depth;
  }
  vec2 sums[PAIRS];
  [[unroll]] for (uint j = 0; j < PAIRS; ++j) sums[j] = vec2(0);

  // Eight neighbours along K, from K on.
#define TAKE(K)                                                                    \
  {                                                                                \
    vec4 x0 = x_quad(row, K), x1 = x_quad(row, (K) + 4);                           \
    [[unroll]] for (uint j = 0; j < TILE_N; ++j) {                                 \
      vec4 w0, w1;                                                                 \
      load_w(w_at[j] + (K), w0, w1);                                               \
      [[unroll]] for (uint c = 0; c < 4; ++c) sums[j / 2][j % 2] += x0[c] * w0[c]; \
      [[unroll]] for (uint c = 0; c < 4; ++c) sums[j / 2][j % 2] += x1[c] * w1[c]; \
    }                                                                              \
  }
  // The loop tests at the bottom: when a loop tests at the top, these drivers run the body once
  // more, masked.
  const uint whole = params.depth / SPAN * SPAN;
  if (whole > 0) {
    uint k = 0;
    do {
      TAKE(k + lane * 8)
      k += SPAN;
    } while (k < whole);
  }
  if (whole + lane * 8 < params.depth) TAKE(whole + lane * 8)

  // After step b a lane keeps the half of the sums that its bit b selects; `first` is the pair that
  // remains.
  uint first = 0;
  [[unroll]] for (uint b = 0; b < kMaxSteps; ++b) {
    const uint kept = PAIRS >> (b + 1);
    if (1u << b < SUBGROUP_SIZE) {
      if (kept == 0) {
        sums[0] +=
            vec2(subgroupShuffleXor(sums[0].x, 1u << b), subgroupShuffleXor(sums[0].y, 1u << b));
      } else {
        bool upper = (lane >> b & 1u) != 0;
        [[unroll]] for (uint j = 0; j < kept; ++j) {
          vec2 mine = upper ? sums[j + kept] : sums[j], theirs = upper ? sums[j] : sums[j + kept];
          sums[j] = mine + vec2(subgroupShuffleXor(theirs.x, 1u << b),
                                subgroupShuffleXor(theirs.y, 1u << b));
        }
        first += upper ? kept : 0;
      }
    }
  }
  const uint kept = PAIRS > SUBGROUP_SIZE ? PAIRS / SUBGROUP_SIZE : 1;
  // Where there are more lanes than pairs, several lanes hold the same pair.
  if (lane < PAIRS) {
    [[unroll]] for (uint j = 0; j < kept; ++j) {
      store_pair(row, column0 + (first + j) * 2, sums[j].x, sums[j].y);
    }
  }
}
