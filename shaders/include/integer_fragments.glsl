// Fragments of signed 8-bit integers, and of 32-bit sums, in the two forms of fragments.glsl, which
// must be included first. Read from `operands`: sixteen integers are a unit. Integer sums are added
// to f32 sums times a factor for each row and one for each column; four factors are a unit.
#ifndef MULCIBER_INTEGER_FRAGMENTS_GLSL
#define MULCIBER_INTEGER_FRAGMENTS_GLSL

#ifndef PLAIN_FRAGMENTS

#define INTEGERS_A coopmat<int8_t, gl_ScopeSubgroup, FRAGMENT_M, FRAGMENT_K, gl_MatrixUseA>
#define INTEGERS_B coopmat<int8_t, gl_ScopeSubgroup, FRAGMENT_K, FRAGMENT_N, gl_MatrixUseB>
#define INTEGER_SUM coopmat<int, gl_ScopeSubgroup, FRAGMENT_M, FRAGMENT_N, gl_MatrixUseAccumulator>

#define ZERO_INTEGER_SUM INTEGER_SUM(0)
#define LOAD_INTEGERS_A(A, AT_UNIT, LINE_UNITS) LOAD_A(A, AT_UNIT, LINE_UNITS)
// Loads B from columns (along K), which are rows in memory.
#define LOAD_INTEGERS_B(B, AT_UNIT, LINE_UNITS) LOAD_B_TRANSPOSED(B, AT_UNIT, LINE_UNITS)
#define MULTIPLY_ADD_INTEGERS(A, B, SUM) MULTIPLY_ADD(A, B, SUM)
// Like FRAGMENT_FACTORS, for the columns of sums: a matrix of equal rows.
#define COLUMN_FACTORS FRAGMENT_SUM
#define LOAD_COLUMN_FACTORS(FACTORS, AT_UNIT) \
  coopMatLoad(FACTORS, operands, AT_UNIT, 0, gl_CooperativeMatrixLayoutRowMajor)
#define ADD_SCALED(SUM, INTEGERS, ROWS, COLUMNS) \
  SUM = SUM + FRAGMENT_SUM(INTEGERS) * (ROWS * COLUMNS)
#define ADD_OUTER_PRODUCT(SUM, ROWS, COLUMNS) SUM = SUM + ROWS * COLUMNS

#else

struct IntegersA {
  uvec4 sixteens[2];  // FRAGMENT_K / 16, up to 2
};
struct IntegersB {
  uint at, line;
};
struct IntegerSum {
  int sums[16];  // SUMS_OF_A_LANE, up to 16
};
#define INTEGERS_A IntegersA
#define INTEGERS_B IntegersB
#define INTEGER_SUM IntegerSum

IntegerSum zero_integer_sum() {
  IntegerSum sum;
  FRAGMENT_LOOP for (uint i = 0; i < 16; ++i) sum.sums[i] = 0;
  return sum;
}

IntegersA load_integers_a(uint at, uint line) {
  IntegersA a;
  FRAGMENT_LOOP for (uint i = 0; i < FRAGMENT_K / 16; ++i) {
    a.sixteens[i] = operands[at + PLAIN_ROW * line + i];
  }
  return a;
}

IntegerSum multiply_add_integers(IntegersA a, IntegersB b, IntegerSum sum) {
  FRAGMENT_LOOP for (uint i = 0; i < SUMS_OF_A_LANE; ++i) {
    int total = sum.sums[i];
    FRAGMENT_LOOP for (uint k = 0; k < FRAGMENT_K / 4; ++k) {
      uint word = operands[b.at + (PLAIN_COLUMN + i) * b.line + k / 4][k % 4];
      total = dot4(word, a.sixteens[k / 4][k % 4], total);
    }
    sum.sums[i] = total;
  }
  return sum;
}

float column_factor(uint at, uint column) {
  return uintBitsToFloat(operands[at + column / 4][column % 4]);
}

FragmentSum add_scaled(FragmentSum sum, IntegerSum integers, float row, uint columns) {
  FRAGMENT_LOOP for (uint i = 0; i < SUMS_OF_A_LANE; ++i) {
    sum.sums[i] += float(integers.sums[i]) * (row * column_factor(columns, PLAIN_COLUMN + i));
  }
  return sum;
}

FragmentSum add_outer_product(FragmentSum sum, float row, uint columns) {
  FRAGMENT_LOOP for (uint i = 0; i < SUMS_OF_A_LANE; ++i) {
    sum.sums[i] += row * column_factor(columns, PLAIN_COLUMN + i);
  }
  return sum;
}

#define ZERO_INTEGER_SUM zero_integer_sum()
#define LOAD_INTEGERS_A(A, AT_UNIT, LINE_UNITS) A = load_integers_a(AT_UNIT, LINE_UNITS)
#define LOAD_INTEGERS_B(B, AT_UNIT, LINE_UNITS) B = IntegersB(AT_UNIT, LINE_UNITS)
#define MULTIPLY_ADD_INTEGERS(A, B, SUM) SUM = multiply_add_integers(A, B, SUM)
#define COLUMN_FACTORS uint  // they stay in shared memory
#define LOAD_COLUMN_FACTORS(FACTORS, AT_UNIT) FACTORS = AT_UNIT
#define ADD_SCALED(SUM, INTEGERS, ROWS, COLUMNS) SUM = add_scaled(SUM, INTEGERS, ROWS, COLUMNS)
#define ADD_OUTER_PRODUCT(SUM, ROWS, COLUMNS) SUM = add_outer_product(SUM, ROWS, COLUMNS)

#endif

#endif
