// Tiles that a workgroup holds together, for matmul_tensor.comp: operands in f16, sums in f32. They
// have two forms:
//   cooperative matrices of workgroup scope, of VK_NV_cooperative_matrix2: the driver loads them
//   from memory by tensor layouts, stages them as it chooses, and calls decode functions for
//   elements that are not f16 in memory;
//   with PLAIN_FRAGMENTS, numbers of an invocation: rows of kernels.def for the conformance suite,
//   which runs the loop, the decoding, the edges and the epilogue on every device with them.
// Beyond an operand's edges there are zeros; sums beyond the edges of y are not stored.
//
// Where the product is gated a tile of W has lines 2 n + `which` of W, else lines n.
#ifndef MULCIBER_MATMUL_TENSOR_TILES_GLSL
#define MULCIBER_MATMUL_TENSOR_TILES_GLSL

// Rows of W for one column of y.
const uint LINES_OF_A_RESULT = GATED != 0 ? 2 : 1;
const uint TILE_R = TILE_N / LINES_OF_A_RESULT;  // columns of y per workgroup
#define RESULTS (params.columns / LINES_OF_A_RESULT)

// Elements of x and of W, clamped to the range of f16, because their sums would be infinite.
float half_range(float value) { return clamp(value, -65504.0, 65504.0); }
#ifdef WEIGHT_BLOCKS
#include "block_element.glsl"
BUFFER(0, readonly, x_floats, float)
float x_at(uint row, uint k) { return half_range(AT(x_floats, row * params.depth + k)); }
float w_at(uint line, uint k) { return half_range(block_element(line, k)); }
#else
float x_at(uint row, uint k) { return half_range(x_element(row * params.depth + k)); }
float w_at(uint line, uint k) { return half_range(w_element(line * params.depth + k)); }
#endif

#ifndef PLAIN_FRAGMENTS

#define X_TILE coopmat<float16_t, gl_ScopeWorkgroup, TILE_M, TILE_K, gl_MatrixUseA>
#define W_TILE coopmat<float16_t, gl_ScopeWorkgroup, TILE_K, TILE_R, gl_MatrixUseB>
#define SUM_TILE coopmat<float, gl_ScopeWorkgroup, TILE_M, TILE_R, gl_MatrixUseAccumulator>
#define ZERO_SUMS SUM_TILE(0.0)

// Layouts with and without edges: without, compilers omit the checks of edges.
#define EDGED gl_CooperativeMatrixClampModeConstantNV
#define UNEDGED gl_CooperativeMatrixClampModeUndefinedNV
// The depth as whole eights, which the compiler can see.
#define DEPTH_IN_EIGHTS (params.depth / 8 * 8)

#ifdef ACTIVATION_F16
BUFFER(0, readonly, x_halves, float16_t)
#define LOAD_X(X, LAYOUT) coopMatLoadTensorNV(X, x_halves_buffer.data, 0, LAYOUT)
#else
#ifndef WEIGHT_BLOCKS
BUFFER(0, readonly, x_floats, float)
#endif
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer XPlace {
  float value;
};
float16_t decode_x(const in XPlace place, const in uint at[2], const in uint within[2]) {
  return float16_t(x_at(at[0], at[1]));
}
#define LOAD_X(X, LAYOUT) coopMatLoadTensorNV(X, x_floats_buffer.data, 0, LAYOUT, decode_x)
#endif
#define X_LAYOUT(EDGES, ROW, K)                                                                 \
  sliceTensorLayoutNV(                                                                          \
      setTensorLayoutDimensionNV(createTensorLayoutNV(2, EDGES), params.rows, DEPTH_IN_EIGHTS), \
      ROW, TILE_M, K, TILE_K)
#define LOAD_X_TILE(X, ROW, K)            \
  if (WHOLE_ROWS && WHOLE_DEPTH) {        \
    LOAD_X(X, X_LAYOUT(UNEDGED, ROW, K)); \
  } else {                                \
    LOAD_X(X, X_LAYOUT(EDGED, ROW, K));   \
  }

// W is stored line by line: its tiles are transposed when loaded.
#define TURNED createTensorViewNV(2, false, 1, 0)
#ifdef WEIGHT_BLOCKS
// Elements are decoded one by one, by their coordinates alone: with coordinates in blocks (a layout
// with block sizes) NVIDIA's driver 580.159 gives other numbers. The address is ignored.
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer WPlace { uint word; };
#define DECODE_W(WHICH) float16_t(w_at(at[0] * LINES_OF_A_RESULT + WHICH, at[1]))
#define W_LAYOUT(EDGES, LINE, K)                                                             \
  sliceTensorLayoutNV(                                                                       \
      setTensorLayoutStrideNV(                                                               \
          setTensorLayoutDimensionNV(createTensorLayoutNV(2, EDGES), RESULTS, params.depth), \
          row_words(FORMAT) * LINES_OF_A_RESULT, 1),                                         \
      LINE, TILE_R, K, TILE_K)
#define LOAD_W(W, WHICH, LAYOUT) \
  coopMatLoadTensorNV(W, blocks_buffer.data, 0, LAYOUT, TURNED, decode_w_##WHICH)
#else
BUFFER(1, readonly, w_halves, float16_t)
layout(buffer_reference, std430, buffer_reference_align = 2) readonly buffer WPlace {
  float16_t bits;
};
#define DECODE_W(WHICH) float16_t(w_at(at[0] * LINES_OF_A_RESULT + WHICH, at[1]))
#define W_LAYOUT(EDGES, LINE, K)                                                                \
  sliceTensorLayoutNV(                                                                          \
      setTensorLayoutStrideNV(                                                                  \
          setTensorLayoutDimensionNV(createTensorLayoutNV(2, EDGES), RESULTS, DEPTH_IN_EIGHTS), \
          DEPTH_IN_EIGHTS* LINES_OF_A_RESULT, 1),                                               \
      LINE, TILE_R, K, TILE_K)
// f16 is stored as needed, bf16 must be decoded.
#define LOAD_W(W, WHICH, LAYOUT)                                                          \
  if (FORMAT == 1) {                                                                      \
    coopMatLoadTensorNV(W, w_halves_buffer.data, WHICH* DEPTH_IN_EIGHTS, LAYOUT, TURNED,  \
                        decode_w_##WHICH);                                                \
  } else {                                                                                \
    coopMatLoadTensorNV(W, w_halves_buffer.data, WHICH* DEPTH_IN_EIGHTS, LAYOUT, TURNED); \
  }
#endif
float16_t decode_w_0(const in WPlace place, const in uint at[2], const in uint within[2]) {
  return DECODE_W(0);
}
float16_t decode_w_1(const in WPlace place, const in uint at[2], const in uint within[2]) {
  return DECODE_W(1);
}
#define LOAD_W_TILE(W, WHICH, LINE, K)            \
  if (WHOLE_COLUMNS && WHOLE_DEPTH) {             \
    LOAD_W(W, WHICH, W_LAYOUT(UNEDGED, LINE, K)); \
  } else {                                        \
    LOAD_W(W, WHICH, W_LAYOUT(EDGED, LINE, K));   \
  }

#define MULTIPLY_ADD(X, W, SUMS) SUMS = coopMatMulAdd(X, W, SUMS)
// Calls FUNCTION(row, column, sum, ...) for every sum of the tile. Drivers may call it more than
// once for a sum, so it must not store anything.
#define EACH_SUM(SUMS, FUNCTION, FIRST_COLUMN) \
  coopMatPerElementNV(SUMS, SUMS, FUNCTION, FIRST_COLUMN)
#define EACH_PAIR(SUMS, SECONDS, FUNCTION, FIRST_COLUMN) \
  coopMatPerElementNV(SUMS, SUMS, FUNCTION, SECONDS, FIRST_COLUMN)

#ifdef ACTIVATION_F16
#define Y_TILE coopmat<float16_t, gl_ScopeWorkgroup, TILE_M, TILE_R, gl_MatrixUseAccumulator>
#else
#define Y_TILE SUM_TILE
#endif
#define Y_LAYOUT(ROW, COLUMN)                                                                     \
  sliceTensorLayoutNV(setTensorLayoutStrideNV(                                                    \
                          setTensorLayoutDimensionNV(createTensorLayoutNV(2, EDGED), params.rows, \
                                                     params.first_column + RESULTS),              \
                          params.row_stride, 1),                                                  \
                      ROW, TILE_M, params.first_column + COLUMN, TILE_R)
#define ADD_Y_TILE(SUMS, ROW, COLUMN)                                  \
  {                                                                    \
    Y_TILE old = Y_TILE(0.0);                                          \
    coopMatLoadTensorNV(old, y_buffer.data, 0, Y_LAYOUT(ROW, COLUMN)); \
    SUMS = SUMS + SUM_TILE(old);                                       \
  }
#define STORE_Y_TILE(SUMS, ROW, COLUMN) \
  coopMatStoreTensorNV(Y_TILE(SUMS), y_buffer.data, 0, Y_LAYOUT(ROW, COLUMN))

#else

// An invocation has every LOCAL_SIZE-th sum, and reads operands directly from memory.
const uint SUMS_OF_AN_INVOCATION = TILE_M * TILE_R / LOCAL_SIZE;
#define EACH_OF_SUMS [[dont_unroll]] for (uint i = 0; i < SUMS_OF_AN_INVOCATION; ++i)
uint plain_row(uint i) { return (i * LOCAL_SIZE + gl_LocalInvocationIndex) / TILE_R; }
uint plain_column(uint i) { return (i * LOCAL_SIZE + gl_LocalInvocationIndex) % TILE_R; }
struct PlainTile {
  uint line, k, which;
};
struct PlainSums {
  float sums[64];  // SUMS_OF_AN_INVOCATION, up to 64
};
#define X_TILE PlainTile
#define W_TILE PlainTile
#define SUM_TILE PlainSums
#define ZERO_SUMS zero_sums()
#define LOAD_X_TILE(X, ROW, K) X = PlainTile(ROW, K, 0)
#define LOAD_W_TILE(W, WHICH, LINE, K) W = PlainTile(LINE, K, WHICH)
#define MULTIPLY_ADD(X, W, SUMS) multiply_add(X, W, SUMS)

PlainSums zero_sums() {
  PlainSums zero;
  [[dont_unroll]] for (uint i = 0; i < 64; ++i) zero.sums[i] = 0.0;
  return zero;
}

float as_half(float value) { return unpackHalf2x16(packHalf2x16(vec2(value, 0.0))).x; }

void multiply_add(PlainTile x, PlainTile w, inout PlainSums sums) {
  EACH_OF_SUMS {
    uint row = x.line + plain_row(i), result = w.line + plain_column(i);
    if (row >= params.rows || result >= RESULTS) continue;
    float sum = sums.sums[i];
    [[dont_unroll]] for (uint k = x.k; k < min(x.k + TILE_K, params.depth); ++k) {
      sum += as_half(x_at(row, k)) * as_half(w_at(result * LINES_OF_A_RESULT + w.which, k));
    }
    sums.sums[i] = sum;
  }
}

#define EACH_SUM(SUMS, FUNCTION, FIRST_COLUMN) \
  EACH_OF_SUMS SUMS.sums[i] = FUNCTION(plain_row(i), plain_column(i), SUMS.sums[i], FIRST_COLUMN)
#define EACH_PAIR(SUMS, SECONDS, FUNCTION, FIRST_COLUMN) \
  EACH_OF_SUMS SUMS.sums[i] =                            \
      FUNCTION(plain_row(i), plain_column(i), SUMS.sums[i], SECONDS.sums[i], FIRST_COLUMN)

// Calls DO for each sum that has an element of y, which is `at`.
#define EACH_OF_Y(ROW, COLUMN, DO)                                    \
  EACH_OF_SUMS {                                                      \
    uint row = ROW + plain_row(i), result = COLUMN + plain_column(i); \
    uint at = row * params.row_stride + params.first_column + result; \
    if (row < params.rows && result < RESULTS) DO;                    \
  }
#define ADD_Y_TILE(SUMS, ROW, COLUMN) EACH_OF_Y(ROW, COLUMN, SUMS.sums[i] += y_load(at))
#define STORE_Y_TILE(SUMS, ROW, COLUMN) EACH_OF_Y(ROW, COLUMN, y_store(at, SUMS.sums[i]))

#endif

#endif
