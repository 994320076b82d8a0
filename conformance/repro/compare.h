/* Compares the device's results with the expected ones, element by element. */
#pragma once

#include "case_types.h"

static double half(uint16_t bits) {
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  const double size = exponent == 31  ? (mantissa ? NAN : INFINITY)
                      : exponent == 0 ? ldexp(mantissa, -24)
                                      : ldexp(1024 + mantissa, exponent - 25);
  return bits & 0x8000 ? -size : size;
}

/* A row of Q8_0 has a byte for each column, 2 bytes for every 32 columns, padded to 16; one of Q8_1
 * has 8 bytes for every 32 columns. */
static size_t row_bytes(const struct output* output) {
  const size_t columns = output->columns;
  if (output->type == Q8_0) return (columns / 4 + (columns / 32 + 1) / 2 + 3) / 4 * 16;
  if (output->type == Q8_1) return (columns / 32 * 10 + 3) / 4 * 16;
  return columns * (output->type == F16 ? 2 : 4);
}

/* The scale of a Q8_1 block, which also has the sums of 16 integers each: NaN where a sum is wrong.
 */
static double scale_of_block(const char* integers, const char* scales) {
  for (int half_of_it = 0; half_of_it < 2; ++half_of_it) {
    int16_t stored;
    memcpy(&stored, scales + 4 + half_of_it * 2, 2);
    int sum = 0;
    for (int i = 0; i < 16; ++i) sum += (signed char)integers[half_of_it * 16 + i];
    if (sum != stored) return NAN;
  }
  float scale;
  memcpy(&scale, scales, 4);
  return scale;
}

static double element(const char* memory, const struct output* output, uint64_t index) {
  if (output->type == F16) {
    uint16_t bits;
    memcpy(&bits, memory + output->offset + 2 * index, 2);
    return half(bits);
  }
  if (output->type == Q8_0) {
    const uint64_t column = index % output->columns;
    const char* row = memory + output->offset + index / output->columns * row_bytes(output);
    uint16_t scale;
    memcpy(&scale, row + output->columns + column / 32 * 2, 2);
    return half(scale) * ((double)(unsigned char)row[column] - 128);
  }
  if (output->type == Q8_1) {
    const uint64_t column = index % output->columns, block = column / 32;
    const char* row = memory + output->offset + index / output->columns * row_bytes(output);
    return scale_of_block(row + block * 32, row + output->columns + block * 8) *
           (signed char)row[column];
  }
  uint32_t bits;
  memcpy(&bits, memory + output->offset + 4 * index, 4);
  if (output->type == U32) return bits;
  float value;
  memcpy(&value, &bits, 4);
  return value;
}

/* The error of a result. NaN is right where NaN is expected, an infinity where that infinity is
 * expected, or where the type may not hold the number. */
static double error_of(double got, double want, double bound, enum type type) {
  const double largest = type == F16 ? 65504 : type == U32 ? 4294967295.0 : 3.4028234663852886e38;
  if (isnan(want)) return isnan(got) ? 0 : INFINITY;
  if (got == want) return 0;
  if (isnan(got) || !isfinite(want)) return INFINITY;
  if (!isfinite(got)) {
    return !signbit(got) == !signbit(want) && fabs(want) + bound > largest ? bound : INFINITY;
  }
  return fabs(got - want);
}

static bool compare(const char* memory, size_t index) {
  const struct output* output = &outputs[index];
  const uint64_t elements = output->rows * output->columns;
  size_t bytes, bound_bytes = 8 * elements;
  double* expected = read_file(output->expected, &bytes);
  double* bounds = output->bounds ? read_file(output->bounds, &bound_bytes) : calloc(elements, 8);
  if (bytes != 8 * elements || bound_bytes != bytes) give_up("wrong length", output->expected);
  double all = 0, worst = -1, worst_row = 0;
  uint64_t worst_at = 0, wrong = 0;
  for (uint64_t i = 0; i < elements; ++i)
    all += isfinite(expected[i]) ? expected[i] * expected[i] : 0;
  for (uint64_t row = 0; row < output->rows; ++row) {
    double squares = 0, errors = 0;
    for (uint64_t i = row * output->columns; i < (row + 1) * output->columns; ++i) {
      if (isinf(bounds[i])) continue; /* not checked */
      const double error =
          error_of(element(memory, output, i), expected[i], bounds[i], output->type);
      const double share = error == 0 ? 0 : error / bounds[i];
      wrong += !(error <= bounds[i]);
      if (share > worst) {
        worst = share;
        worst_at = i;
      }
      errors += error * error;
      squares += isfinite(expected[i]) ? expected[i] * expected[i] : 0;
    }
    /* A row of (near) zeros is measured by the scale of its tensor, times 1e-6. */
    const double scale =
        fmax(sqrt(squares / (double)output->columns), 1e-6 * sqrt(all / (double)elements));
    if (errors > 0)
      worst_row = fmax(worst_row, sqrt(errors / (double)output->columns) / fmax(scale, 1e-30));
  }
  printf("output %zu, worst at row %" PRIu64 " column %" PRIu64 ": %.9g, expected %.9g", index,
         worst_at / output->columns, worst_at % output->columns, element(memory, output, worst_at),
         expected[worst_at]);
  if (bounds[worst_at] > 0) {
    printf(" +- %.3g", bounds[worst_at]);
  } else {
    printf(" exactly");
  }
  printf("\n  largest error of a row over its root mean square: %.3g", worst_row);
  if (output->usual_row_error > 0) printf(" (%.3g is usual)", output->usual_row_error);
  printf("\n");
  if (wrong) printf("  WRONG in %" PRIu64 " of %" PRIu64 " elements\n", wrong, elements);
  free(expected);
  free(bounds);
  return wrong == 0;
}

/* Whether every byte that belongs to no tensor is still poison. */
static bool undamaged(const unsigned char* memory) {
  uint64_t at = 0;
  for (size_t i = 0; i <= COUNT(owned); ++i) { /* `owned` is sorted */
    const uint64_t end = i < COUNT(owned) ? owned[i].offset : MEMORY_BYTES;
    for (; at < end; ++at) {
      if (memory[at] == (unsigned char)(POISON >> 8 * (at % 4))) continue;
      printf("WRONG: byte %" PRIu64 " was written, which belongs to no tensor\n", at);
      return false;
    }
    if (i < COUNT(owned) && at < end + owned[i].bytes) at = end + owned[i].bytes;
  }
  return true;
}
