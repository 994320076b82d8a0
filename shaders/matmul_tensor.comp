// Products on matrix units, with tiles that a whole workgroup holds: operands are f16, sums f32,
// and there is neither shared memory nor a barrier, because the driver loads the tiles
// (VK_NV_cooperative_matrix2, matmul_tensor_tiles.glsl). f32 activations are rounded to f16 when
// loaded; weights in blocks or bf16 are decoded to it.
#version 450
#extension GL_GOOGLE_include_directive : require
#ifndef PLAIN_FRAGMENTS
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_NV_cooperative_matrix2 : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#endif
#include "interface.h"
#include "matmul.h"
#include "types.glsl"
#include "whole_tiles.glsl"
#include "matmul_operands.glsl"

ROW_CONSTANT(TILE_M, 128);
ROW_CONSTANT(TILE_N, 128);
ROW_CONSTANT(TILE_K, 32);
#include "matmul_tensor_tiles.glsl"

// The epilogue of a sum, whose column of y is first + column; beyond the last column it does
// nothing.
uint line_of(uint column, uint first) {
  return min(first + column, RESULTS - 1) * LINES_OF_A_RESULT;
}
float finish(const in uint row, const in uint column, const in float sum, const in uint first) {
  return activate(biased(line_of(column, first), sum), ACTIVATION_FUNCTION);
}
float finish_gated(const in uint row, const in uint column, const in float gate,
                   const in float gated, const in uint first) {
  uint line = line_of(column, first);
  return activate(biased(line, gate), ACTIVATION_FUNCTION) * biased(line + 1, gated);
}

void main() {
  uint row = gl_WorkGroupID.y * TILE_M, result = gl_WorkGroupID.x * TILE_R;
  SUM_TILE sums = ZERO_SUMS, gated = ZERO_SUMS;
  for (uint k = 0; k < params.depth; k += TILE_K) {
    X_TILE x;
    W_TILE w;
    LOAD_X_TILE(x, row, k);
    LOAD_W_TILE(w, 0, result, k);
    MULTIPLY_ADD(x, w, sums);
    if (GATED != 0) {
      LOAD_W_TILE(w, 1, result, k);
      MULTIPLY_ADD(x, w, gated);
    }
  }
  if (GATED != 0) {
    EACH_PAIR(sums, gated, finish_gated, result);
  } else {
    EACH_SUM(sums, finish, result);
  }
  if (ACCUMULATE != 0) ADD_Y_TILE(sums, row, result);
  STORE_Y_TILE(sums, row, result);
}
