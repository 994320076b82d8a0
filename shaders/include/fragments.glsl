// Fragments of matrices, spread over the lanes of a subgroup: operands in f16, or in bf16 where the
// row's weights are, and sums in f32. Kernels on matrix units use only the interface defined here,
// which has two forms:
//   cooperative matrices of VK_KHR_cooperative_matrix, which matrix units multiply;
//   with PLAIN_FRAGMENTS, numbers of a lane: rows of kernels.def for the conformance suite, which
//   runs the tiles, staging, barriers and epilogues of these kernels on every device with them. A
//   subgroup is then PLAIN_LANES neighbours of a workgroup, whatever the device's subgroups are.
// Fragments are read from `operands`, shared memory in units of eight halves or four floats; `at`
// and `line` (the distance of two rows) count these units.
//
// A kernel defines SHARED_EIGHTS, the size of `operands`, before it includes this.
#ifndef MULCIBER_FRAGMENTS_GLSL
#define MULCIBER_FRAGMENTS_GLSL

ROW_CONSTANT(FRAGMENT_M, 16);
ROW_CONSTANT(FRAGMENT_N, 16);
ROW_CONSTANT(FRAGMENT_K, 16);

shared uvec4 operands[SHARED_EIGHTS];

#ifdef WEIGHT_BF16
// The upper halves of two f32, rounded to nearest even. NaN keeps a bit that rounding cannot clear.
uint pack_two(vec2 two) {
  uvec2 bits = floatBitsToUint(two);
  uvec2 nearest = bits + 0x7fffu + (bits >> 16 & 1u);
  nearest = mix(nearest, bits | 0x400000u, isnan(two));
  return nearest.x >> 16 | nearest.y & 0xffff0000u;
}
uvec4 pack_eight(vec4 low, vec4 high) {
  return uvec4(pack_two(low.xy), pack_two(low.zw), pack_two(high.xy), pack_two(high.zw));
}
#else
// Eight numbers as halves, clamped to the range of f16, because their sums would be infinite.
uvec4 pack_eight(vec4 low, vec4 high) {
  low = clamp(low, -65504.0, 65504.0);
  high = clamp(high, -65504.0, 65504.0);
  return uvec4(packHalf2x16(low.xy), packHalf2x16(low.zw), packHalf2x16(high.xy),
               packHalf2x16(high.zw));
}
#endif

#ifndef PLAIN_FRAGMENTS

#define LANES SUBGROUP_SIZE
#define LANE gl_SubgroupInvocationID
#define SUBGROUP gl_SubgroupID
// Barrier between a subgroup's stores to shared memory and its loads from there.
#define FRAGMENT_BARRIER() subgroupBarrier()
// Attribute of loops over fragments: these are registers, so their number is fixed.
#define FRAGMENT_LOOP [[unroll]]

#ifdef WEIGHT_BF16
#define OPERAND bfloat16_t
#else
#define OPERAND float16_t
#endif
#define FRAGMENT_A coopmat<OPERAND, gl_ScopeSubgroup, FRAGMENT_M, FRAGMENT_K, gl_MatrixUseA>
#define FRAGMENT_B coopmat<OPERAND, gl_ScopeSubgroup, FRAGMENT_K, FRAGMENT_N, gl_MatrixUseB>
#define FRAGMENT_SUM \
  coopmat<float, gl_ScopeSubgroup, FRAGMENT_M, FRAGMENT_N, gl_MatrixUseAccumulator>

#define ZERO_SUM FRAGMENT_SUM(0.0)
#define LOAD_A(A, AT_UNIT, LINE_UNITS) \
  coopMatLoad(A, operands, AT_UNIT, LINE_UNITS, gl_CooperativeMatrixLayoutRowMajor)
// Loads B from rows (along N) in memory.
#define LOAD_B(B, AT_UNIT, LINE_UNITS) \
  coopMatLoad(B, operands, AT_UNIT, LINE_UNITS, gl_CooperativeMatrixLayoutRowMajor)
// Loads B from columns (along K), which are rows in memory.
#define LOAD_B_TRANSPOSED(B, AT_UNIT, LINE_UNITS) \
  coopMatLoad(B, operands, AT_UNIT, LINE_UNITS, gl_CooperativeMatrixLayoutColumnMajor)
#define MULTIPLY_ADD(A, B, SUM) SUM = coopMatMulAdd(A, B, SUM)
#define STORE_SUM(SUM, AT_UNIT, LINE_UNITS) \
  coopMatStore(SUM, operands, AT_UNIT, LINE_UNITS, gl_CooperativeMatrixLayoutRowMajor)
// Factors for the rows of sums: FRAGMENT_M floats. Only the driver knows which lane holds which
// element of a sum, so the factors are a matrix of equal columns, loaded with a stride of 0.
#define FRAGMENT_FACTORS FRAGMENT_SUM
#define LOAD_FACTORS(FACTORS, AT_UNIT) \
  coopMatLoad(FACTORS, operands, AT_UNIT, 0, gl_CooperativeMatrixLayoutColumnMajor)
#define SCALE_ROWS(SUM, FACTORS) SUM = SUM * FACTORS

#else

ROW_CONSTANT(PLAIN_LANES, 32);  // a multiple of FRAGMENT_M, up to FRAGMENT_M * FRAGMENT_N
#define LANES PLAIN_LANES
#define LANE (gl_LocalInvocationIndex % PLAIN_LANES)
#define SUBGROUP (gl_LocalInvocationIndex / PLAIN_LANES)
// This subgroup may consist of several of the device's.
#define FRAGMENT_BARRIER() barrier()
#define FRAGMENT_LOOP [[dont_unroll]]

// A lane keeps one row of A and neighbouring sums of that row; B stays in shared memory.
// Neighbouring lanes have different rows, unlike lanes that later read whole rows from shared
// memory: so a missing barrier between the two shows.
const uint SUMS_OF_A_LANE = FRAGMENT_M * FRAGMENT_N / PLAIN_LANES;
#define PLAIN_ROW (LANE % FRAGMENT_M)
#define PLAIN_COLUMN (LANE / FRAGMENT_M * SUMS_OF_A_LANE)
struct FragmentA {
  uvec4 eights[2];  // FRAGMENT_K / 8, up to 2
};
struct FragmentB {
  uint at, line;
  bool transposed;
};
struct FragmentSum {
  float sums[16];  // SUMS_OF_A_LANE, up to 16
};
#define FRAGMENT_A FragmentA
#define FRAGMENT_B FragmentB
#define FRAGMENT_SUM FragmentSum

FragmentSum zero_sum() {
  FragmentSum sum;
  FRAGMENT_LOOP for (uint i = 0; i < 16; ++i) sum.sums[i] = 0.0;
  return sum;
}

FragmentA load_a(uint at, uint line) {
  FragmentA a;
  FRAGMENT_LOOP for (uint i = 0; i < FRAGMENT_K / 8; ++i) {
    a.eights[i] = operands[at + PLAIN_ROW * line + i];
  }
  return a;
}

float half_of_eight(uvec4 eight, uint i) {
#ifdef WEIGHT_BF16
  return uintBitsToFloat(i % 2 == 0 ? eight[i / 2] << 16 : eight[i / 2] & 0xffff0000u);
#else
  return unpackHalf2x16(eight[i / 2])[i % 2];
#endif
}

FragmentSum multiply_add(FragmentA a, FragmentB b, FragmentSum sum) {
  FRAGMENT_LOOP for (uint i = 0; i < SUMS_OF_A_LANE; ++i) {
    uint n = PLAIN_COLUMN + i;
    float total = sum.sums[i];
    FRAGMENT_LOOP for (uint k = 0; k < FRAGMENT_K; ++k) {
      uint at = b.transposed ? n * b.line + k / 8 : k * b.line + n / 8;
      float other = half_of_eight(operands[b.at + at], b.transposed ? k % 8 : n % 8);
      total += half_of_eight(a.eights[k / 8], k % 8) * other;
    }
    sum.sums[i] = total;
  }
  return sum;
}

void store_sum(FragmentSum sum, uint at, uint line) {
  FRAGMENT_LOOP for (uint i = 0; i < SUMS_OF_A_LANE; ++i) {
    uint n = PLAIN_COLUMN + i;
    operands[at + PLAIN_ROW * line + n / 4][n % 4] = floatBitsToUint(sum.sums[i]);
  }
}

#define FRAGMENT_FACTORS float
float load_factors(uint at) { return uintBitsToFloat(operands[at + PLAIN_ROW / 4][PLAIN_ROW % 4]); }

FragmentSum scale_rows(FragmentSum sum, float factor) {
  FRAGMENT_LOOP for (uint i = 0; i < SUMS_OF_A_LANE; ++i) sum.sums[i] *= factor;
  return sum;
}

#define ZERO_SUM zero_sum()
#define LOAD_A(A, AT_UNIT, LINE_UNITS) A = load_a(AT_UNIT, LINE_UNITS)
#define LOAD_B(B, AT_UNIT, LINE_UNITS) B = FragmentB(AT_UNIT, LINE_UNITS, false)
#define LOAD_B_TRANSPOSED(B, AT_UNIT, LINE_UNITS) B = FragmentB(AT_UNIT, LINE_UNITS, true)
#define MULTIPLY_ADD(A, B, SUM) SUM = multiply_add(A, B, SUM)
#define STORE_SUM(SUM, AT_UNIT, LINE_UNITS) store_sum(SUM, AT_UNIT, LINE_UNITS)
#define LOAD_FACTORS(FACTORS, AT_UNIT) FACTORS = load_factors(AT_UNIT)
#define SCALE_ROWS(SUM, FACTORS) SUM = scale_rows(SUM, FACTORS)

#endif

#endif
