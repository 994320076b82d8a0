// One case of an op: inputs, the construction of the op, expected results. Tests, the conformance
// suite and the benchmarks all run these. A case is only a description: listing thousands costs
// nothing.
#pragma once

#include <functional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "runtime/program.h"

namespace mulciber::conformance {

/// A tensor in CPU memory. Values are doubles that the storage type represents exactly (u32:
/// integers).
struct CpuTensor {
  Shape shape;
  DataType type = DataType::kF32;
  std::vector<double> values;
  /// For an expected output: the bound on each value's error (conformance/bounds.h); infinite: not
  /// checked. Empty: every value must be exact.
  std::vector<double> bounds;
  /// For an input in a block type: for each value the magnitudes of the two numbers whose sum it
  /// is, added up; and its bytes on the device.
  std::vector<double> sizes;
  std::vector<std::byte> bytes;
};

/// Properties of a device's multiplications that change the possible error.
struct Arithmetic {
  // Operands of products on matrix units are rounded to f16; x is rounded to bf16 where weights are
  // bf16.
  bool half_operands = false, bf16_operands = false;
  /// Products of f16 are summed in f16 (HALF_SUM_DEPTH of shaders/matmul.h).
  bool half_sums = false;
};
/// The arithmetic of a row; with a null `row` that of the row which selection takes on a device.
Arithmetic arithmetic_of(const Kernel* row, const Capabilities& device);

/// Rounds to a number of the storage type.
double round_to(DataType type, double value);
CpuTensor u32_tensor(std::vector<uint32_t> words);
/// The bits of a float as a word, for control tensors.
uint32_t bits_of(float value);

/// Words [first, first + count) of a tensor under another type, as a separate output: (count).
Tensor words_of(const Tensor& tensor, DataType type, uint64_t first, uint64_t count);

/// A number as part of a case's name, without dots or signs that are special in file names or
/// globs; 1e+15 is "1e15", 0.5 is "0p5", -2 is "minus2".
std::string name_part(double value);

/// An input of a case. Its shape is known when the case is listed; its values are drawn when it
/// runs.
struct CaseInput {
  Shape shape;
  DataType type = DataType::kF32;
  /// Fills `values` (one for each element of the shape, initially zero); they are rounded to the
  /// type afterwards.
  std::function<void(std::vector<double>& values, std::mt19937& random)> fill;
  /// For block types, whose values depend on each other: makes the whole tensor instead.
  std::function<CpuTensor(std::mt19937& random)> draw;
};

/// Values from a normal distribution around `mean` (block types: of that size, around 0).
CaseInput normal_input(Shape shape, DataType type, double deviation = 1, double mean = 0);
/// Random whole numbers from -largest to largest without 0: sums of their products are exact.
CaseInput whole_input(Shape shape, DataType type, int largest);
CaseInput words_input(std::vector<uint32_t> words);

struct OpCase {
  std::string name;  // lower-case, dotted: "m33_n64_k130.bias_gelu"
  KernelTypes types;
  bool must_pass = false;        // in the suite's short list
  bool long_list_alone = false;  // never in it, even if exact: another case tests the same
  /// Promises that every bound is 0: the inputs are whole and no sum leaves the accumulator.
  bool exact = false;
  /// Declares inputs or results that would otherwise make a check meaningless: all masked,
  /// constant.
  bool degenerate = false;
  bool subnormal = false;  // inputs may be below the normal numbers of their type
  /// Extents that a workgroup's tiles divide: rows and columns of a product, queries of each row of
  /// keys. 0 where they depend on values or there are no tiles.
  uint64_t tiled_rows = 0, tiled_columns = 0, tiled_queries = 0;
  /// Only for rows whose module has this specialization constant (shaders/*.h); 0: for all rows.
  uint32_t needs_constant = 0;
  /// For products of whole numbers: only for rows that sum them in f32 (f16), where they are exact.
  enum class Sums : uint8_t { kAny, kF32, kF16 } sums = Sums::kAny;
  std::vector<CaseInput> inputs;
  /// Adds the op to a program; inputs in order. Returns outputs in the order of `reference` (an
  /// input that the op writes may be one of them).
  std::function<std::vector<Tensor>(ProgramBuilder&, std::span<const Tensor>)> build;
  /// The double-precision definition of the op, with bounds. Throws nothing.
  std::function<std::vector<CpuTensor>(std::span<const CpuTensor>, const Arithmetic&)> reference;
};

/// The simplest concrete types for the types of a row: f16 for halves, q4_0 for blocks.
KernelTypes plain_types(KernelTypes row);

/// Draws every input of a case. Equal names, types and seeds give equal values, whatever else runs.
std::vector<CpuTensor> draw_inputs(const OpCase& op_case, uint64_t seed);

/// The cases of one op. Each op has one implementation in conformance/ops/, which NAME_cases()
/// returns (shaders/ops.def).
class OpCases {
 public:
  virtual ~OpCases() = default;
  /// The meaning of the numbers of --shape: "M,N,K".
  virtual std::string shape_format() const = 0;
  /// Shapes that `mulciber bench` runs without --shape.
  virtual std::vector<std::vector<uint64_t>> bench_shapes() const = 0;
  /// A plain case of one shape. Throws ShapeError for invalid numbers. `types`: types of a row of
  /// kernels.def or of tensors.
  virtual OpCase make(std::span<const uint64_t> shape, KernelTypes types) const = 0;
  /// A case for every kind of the op's problem at one shape, for `mulciber bench --kinds`; empty
  /// where there is only one kind.
  virtual std::vector<OpCase> kinds(std::span<const uint64_t>, KernelTypes) const { return {}; }
  /// Whether the op only adds, multiplies and moves values of these types, so that results of whole
  /// numbers must be exact: the self-test takes such a case.
  virtual bool exact(KernelTypes) const { return false; }
  /// The cases of the suite: 1, primes, tile edges +-1, masks of all kinds, every epilogue.
  virtual std::vector<OpCase> samples(KernelTypes types) const = 0;
};

/// The cases of one op.
const OpCases& op_cases(Op op);
/// The problem that a case asks selection about, for an op.
Problem problem_of(const OpCase& op_case, Op op);
/// Whether a case is for a row, ignoring its shape.
bool concerns(const OpCase& op_case, const Kernel& row);
/// Whether a case fills a tile of the row except for less than an eighth along each side, so that
/// each part of the tile has work. True where the row has no tile, or the case nothing to divide
/// into tiles.
bool fills_tile(const Kernel& row, const OpCase& op_case);
/// Whether a case is for a row of its op and the row's shape conditions hold.
bool suits(const Kernel& row, const OpCase& op_case);
/// The dispatches of a case on a device; a non-null `row` is forced for its op. Neither memory nor
/// pipelines are made. Throws KernelError or ShapeError when the row cannot serve the case.
std::vector<Node> nodes_of(const Capabilities& device, const OpCase& op_case, const Kernel* row);
/// The row that selection takes for a case of an op on a device, or null when no row serves it.
const Kernel* chosen_row(const Capabilities& device, const OpCase& op_case, Op op);

}  // namespace mulciber::conformance
