// The table of kernels from shaders/kernels.def, and selection: the first row that can serve a
// problem.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/capabilities.h"
#include "runtime/tensor.h"
#include "shaders/row_constants.h"

namespace mulciber {

enum class Op : uint8_t;  // in runtime/op.h: files that include programs need not know every op
const char* name_of(Op op);
/// Says in a line what the op computes.
const char* summary_of(Op op);

/// Bits of ShapeFact (runtime/op.h).
using ShapeFacts = uint32_t;
std::string describe_shape_facts(ShapeFacts facts);

struct KernelTypes {
  DataType activation = DataType::kF32;
  DataType weight = DataType::kF32;
  bool operator==(const KernelTypes&) const = default;
};
/// Whether a row of type `row` serves a problem of type `problem`: the types are equal, or the
/// row's type stands for several (kHalf, kBlocks, kGrids) that include the problem's.
bool serves(KernelTypes row, KernelTypes problem);
/// The concrete types that a row's types stand for.
std::vector<KernelTypes> concrete_types(KernelTypes row);

/// Facts that a row's SPIR-V states.
struct Reflection {
  uint32_t buffer_count = 0;  // buffers (descriptors or addresses)
  uint32_t push_constant_bytes = 0;
  uint32_t shared_memory_bytes = 0;  // with default specialization constants
  bool buffer_address = false;       // buffers are addresses ahead of the parameters
  std::vector<uint32_t> texels;      // bindings that are uniform texel buffers, in order
  std::vector<uint32_t> specialization_ids;
};

/// Names that a row may use in CONSTANTS (shaders/row_constants.h explains each). The values are
/// ids of specialization constants; names from kFirstHostFact on are in no module.
enum class RowConstant : uint32_t {
#define ROW_CONSTANT_ID(NAME) NAME = ID_OF_##NAME,
  ROW_CONSTANTS(ROW_CONSTANT_ID)
#undef ROW_CONSTANT_ID
};
constexpr uint32_t kFirstHostFact = ID_OF_HOST_FACTS;
const char* name_of(RowConstant constant);

struct RowValue {
  RowConstant constant;
  uint32_t value;
};

/// One row of kernels.def.
struct Kernel {
  const char* id;
  Op op;
  const char* source;
  KernelTypes types;
  std::vector<RowValue> constants;
  FeatureSet needs;
  ShapeFacts shape;
  FeatureSet made_for;
  double tolerance;
  std::span<const uint32_t> spirv;  // empty: this build leaves the row out
  bool pinned;                      // the module comes from shaders/pinned
  Reflection reflection;

  /// The value that the row gives a constant; none where the row does not name it.
  std::optional<uint32_t> find(RowConstant constant) const;
  bool names(RowConstant constant) const { return find(constant).has_value(); }
  /// The value that find() returns. Throws KernelError where the row does not name the constant.
  uint32_t constant(RowConstant constant) const;
};

/// All rows, in the order of kernels.def. Reflection runs once, on first use.
std::span<const Kernel> kernels();
/// The row with that id, or null.
const Kernel* find_kernel(std::string_view id);

/// The table as Markdown: docs/reference/kernels.md. A test compares the two.
std::string kernel_table_markdown();

/// Invocations per workgroup of a row on a device.
uint32_t local_size(const Kernel& kernel, const Capabilities& device);

/// What an op asks of selection.
struct Problem {
  Op op;
  KernelTypes types;
  ShapeFacts facts = 0;
  /// The problem's extents in the order of `mulciber bench --shape`, where measurement chooses rows
  /// (runtime/choices.h): plain products and attention.
  std::vector<uint64_t> extents = {};
};

struct Refusal {
  const Kernel* kernel;
  std::string reason;
};

struct Selection {
  const Kernel* kernel = nullptr;    // null: no row serves the problem
  std::vector<Refusal> passed_over;  // better rows, each with its reason
};

/// Why a row cannot run on a device at all, or "" when it can. Ignores shapes.
std::string why_not_runnable(const Kernel& kernel, const Capabilities& device);
/// Why a row cannot serve a problem on a device, or "" when it can. Ignores for which devices the
/// row is made.
std::string why_not(const Kernel& kernel, const Capabilities& device, const Problem& problem);
/// Selects the row that was chosen by measurement (Capabilities::choices), else the first, best
/// first, that can serve the problem, is made for the device and passed its self-test there. Where
/// none of them passed, because time ran out or nothing was tested, the first row without a verdict
/// is taken.
Selection select_kernel(const Capabilities& device, const Problem& problem);
/// Does what select_kernel() does, but throws KernelError with every refusal when no row serves.
const Kernel& require_kernel(const Capabilities& device, const Problem& problem);

}  // namespace mulciber
