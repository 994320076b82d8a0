// One case of an op: inputs, how to build it, what must come out. Tests, the conformance suite and
// the benchmarks all run these. A case is a description: listing thousands costs nothing.
#pragma once

#include <functional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "runtime/program.h"

namespace mulciber::conformance {

/// A tensor on the host. Values are doubles that the storage type represents exactly (u32:
/// integers).
struct HostTensor {
  Shape shape;
  DataType type = DataType::kF32;
  std::vector<double> values;
  /// Of an expected output: how far each value may be off (conformance/bounds.h); infinite: not
  /// looked at. Empty: every value must be met exactly.
  std::vector<double> bounds;
  /// Of an input in a block type: the magnitudes of the two numbers that each value is the sum of,
  /// added up; and its bytes on the device.
  std::vector<double> sizes;
  std::vector<std::byte> bytes;
};

/// How a device multiplies, as far as it changes what may be lost.
struct Arithmetic {
  // Operands of products on matrix units are rounded to f16, x of weights in bf16 to bf16.
  bool half_operands = false, bf16_operands = false;
  /// Products of f16 are added up in f16 (HALF_SUM_DEPTH of shaders/matmul.h).
  bool half_sums = false;
};
/// The arithmetic of a row; of what selection takes on a device where `row` is null.
Arithmetic arithmetic_of(const Kernel* row, const Capabilities& device);

/// Rounds to what the storage type can hold.
double round_to(DataType type, double value);
HostTensor u32_tensor(std::vector<uint32_t> words);
/// The bits of a float as a word, for control tensors.
uint32_t bits_of(float value);

/// Words [first, first + count) of a tensor under another type, as an output of its own: (count).
Tensor words_of(const Tensor& tensor, DataType type, uint64_t first, uint64_t count);

/// A number as part of a case's name: no dots and no signs that a file name or a glob would trip
/// over; 1e+15 is "1e15", 0.5 is "0p5", -2 is "minus2".
std::string name_part(double value);

/// An input of a case. Its shape is known when the case is listed, its values are drawn when it
/// runs.
struct CaseInput {
  Shape shape;
  DataType type = DataType::kF32;
  /// Fills `values` (as many as the shape has elements, zero before); they are rounded to the type
  /// after.
  std::function<void(std::vector<double>& values, std::mt19937& random)> fill;
  /// Of block types, whose values hang together: makes the whole tensor instead.
  std::function<HostTensor(std::mt19937& random)> draw;
};

/// Values from a normal distribution around `mean` (block types: of that size, around 0).
CaseInput normal_input(Shape shape, DataType type, double deviation = 1, double mean = 0);
/// Whole numbers from -largest to largest without 0, all equally often: sums of their products are
/// exact.
CaseInput whole_input(Shape shape, DataType type, int largest);
CaseInput words_input(std::vector<uint32_t> words);

struct OpCase {
  std::string name;  // lower-case, dotted: "m33_n64_k130.bias_gelu"
  KernelTypes types;
  bool must_pass = false;        // in the suite's short list
  bool long_list_alone = false;  // never in it, even if exact: another case shows the same
  /// Promises that every bound is 0: the inputs are whole and no sum leaves the accumulator.
  bool exact = false;
  /// Means to have inputs or results that would otherwise make a check meaningless: all masked,
  /// constant.
  bool degenerate = false;
  bool subnormal = false;  // inputs may be below the normal numbers of their type
  /// What a workgroup's tile is cut out of: rows and columns of a product, queries of each row of
  /// keys. 0 where that depends on values or nothing is cut.
  uint64_t tiled_rows = 0, tiled_columns = 0, tiled_queries = 0;
  /// Only for rows whose module has this specialization constant (shaders/*.h); 0: for all.
  uint32_t needs_constant = 0;
  /// Of products of whole numbers: only for rows that add them up in f32 (f16), where they are
  /// exact.
  enum class Sums : uint8_t { kAny, kF32, kF16 } sums = Sums::kAny;
  std::vector<CaseInput> inputs;
  /// Adds the op to a program; inputs in order. Returns outputs in the order of `reference` (an
  /// input that the op writes may be one of them).
  std::function<std::vector<Tensor>(ProgramBuilder&, std::span<const Tensor>)> build;
  /// The double-precision definition of the op, with bounds. Throws nothing.
  std::function<std::vector<HostTensor>(std::span<const HostTensor>, const Arithmetic&)> reference;
};

/// Of the kinds of types that a row may name, the plainest: f16 of halves, q4_0 of blocks.
KernelTypes plain_types(KernelTypes row);

/// Draws every input of a case: the same values for the same name, types and seed, whatever else
/// runs.
std::vector<HostTensor> draw_inputs(const OpCase& op_case, uint64_t seed);

/// The cases of one op. One implementation per op in conformance/ops/, which NAME_cases() returns
/// (shaders/ops.def).
class OpCases {
 public:
  virtual ~OpCases() = default;
  /// What the numbers of --shape mean: "M,N,K".
  virtual std::string shape_format() const = 0;
  /// Shapes that `mulciber bench` runs without --shape.
  virtual std::vector<std::vector<uint64_t>> bench_shapes() const = 0;
  /// A plain case of one shape. Throws ShapeError when the numbers make no sense. `types` as a row
  /// of kernels.def names them or as a tensor has them.
  virtual OpCase make(std::span<const uint64_t> shape, KernelTypes types) const = 0;
  /// Every kind of the op's problem at one shape, for `mulciber bench --kinds`; none where there is
  /// one kind.
  virtual std::vector<OpCase> kinds(std::span<const uint64_t>, KernelTypes) const { return {}; }
  /// Whether the op only adds, multiplies and moves values of these types, so that whole numbers
  /// must come out exactly: the self-test takes such a case.
  virtual bool exact(KernelTypes) const { return false; }
  /// The cases of the suite: 1, primes, tile edges +-1, masks of all kinds, every epilogue.
  virtual std::vector<OpCase> samples(KernelTypes types) const = 0;
};

/// The cases of one op.
const OpCases& op_cases(Op op);
/// What a case asks of selection for an op.
Problem problem_of(const OpCase& op_case, Op op);
/// Whether a case is for a row, whatever its shape.
bool concerns(const OpCase& op_case, const Kernel& row);
/// Whether a case fills a tile of the row but for less than an eighth along each side, so that each
/// part of it has something to compute. True where the row has no tile, or the case nothing that
/// tiles are cut out of.
bool fills_tile(const Kernel& row, const OpCase& op_case);
/// Whether a case is for a row of its op, which can serve it as far as the row itself says.
bool suits(const Kernel& row, const OpCase& op_case);
/// What a case dispatches on a device, with `row` forced for its op where there is one. Neither
/// memory nor pipelines are made. Throws KernelError or ShapeError when the row cannot serve it.
std::vector<Node> nodes_of(const Capabilities& device, const OpCase& op_case, const Kernel* row);
/// The row that selection takes for a case of an op on a device, or null when none serves it.
const Kernel* chosen_row(const Capabilities& device, const OpCase& op_case, Op op);

}  // namespace mulciber::conformance
