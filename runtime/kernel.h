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

enum class Op : uint8_t;  // runtime/op.h: what includes a program need not know every op
const char* name_of(Op op);
/// What the op computes, in a line.
const char* summary_of(Op op);

/// Bits of ShapeFact (runtime/op.h).
using ShapeFacts = uint32_t;
std::string describe_shape_facts(ShapeFacts facts);

struct KernelTypes {
  DataType activation = DataType::kF32;
  DataType weight = DataType::kF32;
  bool operator==(const KernelTypes&) const = default;
};
/// Whether a row of those types serves a problem of these: the same, or of the kind the row names
/// (kHalf, kBlocks, kGrids).
bool serves(KernelTypes row, KernelTypes problem);
/// What a row's types stand for, one by one.
std::vector<KernelTypes> concrete_types(KernelTypes row);

/// What the SPIR-V of a row says of itself.
struct Reflection {
  uint32_t buffer_count = 0;  // buffers (descriptors or addresses)
  uint32_t push_constant_bytes = 0;
  uint32_t shared_memory_bytes = 0;  // with the defaults of specialization constants
  bool buffer_address = false;       // buffers come as addresses ahead of the parameters
  std::vector<uint32_t> texels;      // bindings that are uniform texel buffers, in order
  std::vector<uint32_t> specialization_ids;
};

/// What CONSTANTS of a row may name (shaders/row_constants.h says what each means). The values are
/// ids of specialization constants; those from kFirstHostFact on stand in no module.
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
  std::span<const uint32_t> spirv;  // empty: this build was told to leave the row out
  bool pinned;                      // its module is of shaders/pinned
  Reflection reflection;

  /// The value that the row gives a constant; none where it does not name it.
  std::optional<uint32_t> find(RowConstant constant) const;
  bool names(RowConstant constant) const { return find(constant).has_value(); }
  /// As find(). Throws KernelError where the row does not name it.
  uint32_t constant(RowConstant constant) const;
};

/// All rows, in the order of kernels.def. Reflection is done once, on first use.
std::span<const Kernel> kernels();
/// The row of that id, or null.
const Kernel* find_kernel(std::string_view id);

/// The table as Markdown: docs/reference/kernels.md, which a test compares with it.
std::string kernel_table_markdown();

/// Invocations per workgroup of a row on a device.
uint32_t local_size(const Kernel& kernel, const Capabilities& device);

/// What an op asks of selection.
struct Problem {
  Op op;
  KernelTypes types;
  ShapeFacts facts = 0;
  /// As `mulciber bench --shape` takes them, where rows are chosen by measurement
  /// (runtime/choices.h): plain products and attention.
  std::vector<uint64_t> extents = {};
};

struct Refusal {
  const Kernel* kernel;
  std::string reason;
};

struct Selection {
  const Kernel* kernel = nullptr;    // null: no row serves the problem
  std::vector<Refusal> passed_over;  // better rows, with the reason each
};

/// Why a row cannot run on a device at all, or "" when it can. Shape is not looked at.
std::string why_not_runnable(const Kernel& kernel, const Capabilities& device);
/// Why a row cannot serve a problem on a device, or "" when it can (whatever devices it is made
/// for).
std::string why_not(const Kernel& kernel, const Capabilities& device, const Problem& problem);
/// The row that was chosen by measurement (Capabilities::choices), else the first, best first, that
/// can serve the problem, is made for the device and passed its self-test there. Where none of them
/// passed, for want of time or because nothing was tested, the first without a verdict.
Selection select_kernel(const Capabilities& device, const Problem& problem);
/// As select_kernel, but throws KernelError with every refusal when no row serves.
const Kernel& require_kernel(const Capabilities& device, const Problem& problem);

}  // namespace mulciber
