// One case of an op: inputs, how to build it, what must come out. Tests, the conformance suite and the
// benchmarks all run these.
#pragma once

#include <functional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "runtime/program.h"

namespace mulciber::conformance {

/// A tensor on the host. Values are doubles that the storage type represents exactly (u32: integers).
struct HostTensor {
  Shape shape;
  DataType type = DataType::kF32;
  std::vector<double> values;
};

/// Rounds to what the storage type can hold.
double round_to(DataType type, double value);
/// Values of that type drawn from a normal distribution of the given deviation.
HostTensor random_tensor(Shape shape, DataType type, std::mt19937& random, double deviation = 1);
HostTensor u32_tensor(std::vector<uint32_t> words);
/// The bits of a float as a word, for control tensors.
uint32_t bits_of(float value);

struct OpCase {
  std::string name;  // lower-case, dotted: "m33_n64_k130.bias_gelu"
  KernelTypes types;
  std::vector<HostTensor> inputs;
  /// Adds the op to a program; inputs in order. Returns outputs in the order of `reference` (an input that
  /// the op writes may be one of them).
  std::function<std::vector<Tensor>(ProgramBuilder&, std::span<const Tensor>)> build;
  /// The double-precision definition of the op. Throws nothing. For u32 outputs the comparison is exact.
  std::function<std::vector<HostTensor>(std::span<const HostTensor>)> reference;
};

/// The cases of one op. One implementation per op in conformance/ops/.
class OpCases {
 public:
  virtual ~OpCases() = default;
  virtual Op op() const = 0;
  /// What the numbers of --shape mean: "M,N,K".
  virtual std::string shape_format() const = 0;
  /// Shapes that `mulciber bench` runs without --shape.
  virtual std::vector<std::vector<uint64_t>> bench_shapes() const = 0;
  /// A plain case of one shape. Throws ShapeError when the numbers make no sense.
  virtual OpCase make(std::span<const uint64_t> shape, KernelTypes types, std::mt19937& random) const = 0;
  /// The cases of the suite: 1, primes, tile edges +-1, masks of all kinds, every epilogue.
  virtual std::vector<OpCase> samples(KernelTypes types, std::mt19937& random) const = 0;
};

/// Every op's cases, in the order of Op.
std::span<const OpCases* const> all_op_cases();

/// The cases of one op. Throws KernelError when it has none.
const OpCases& op_cases(Op op);
/// The row that selection takes for a case of an op, or null when none serves it.
const Kernel* chosen_row(Device& device, const OpCase& op_case, Op op);

enum class Verdict { kPass, kFail, kNotSupported };
struct CaseResult {
  Verdict verdict = Verdict::kFail;
  std::string detail;       // worst element with both values, or why not supported
  double worst_error = 0;   // largest root-mean-square error of a row over its bound
  double nmse = 0;          // over all outputs
};

/// Runs one case on one row: outputs poisoned before, each row of each output compared with the reference
/// within the row's tolerance; NaN never passes. Runs twice by replay and requires equal bits.
CaseResult run_case(Device& device, const OpCase& op_case, const Kernel& row);

struct Timing {
  double median_ms = 0;
  double spread_ms = 0;     // interquartile range
  Work work;                // per run
  uint32_t dispatches = 0;
};
/// Times one case on one row by timestamps, or by the host's clock over many replays where the device has
/// none; medians over at least `min_seconds`.
Timing time_case(Device& device, const OpCase& op_case, const Kernel& row, double min_seconds);

}  // namespace mulciber::conformance
