// The table of kernels from shaders/kernels.def, and selection: the first row that can serve a problem.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/capabilities.h"
#include "runtime/tensor.h"

namespace mulciber {

enum class Op : uint8_t {
  kMatmul,
  kAttention,
  kAttentionMap,
  kSoftmax,
  kLayerNorm,
  kRmsNorm,
  kEmbedding,
  kElementwise,
  kAppendCache,
  kRopeAppend,
  kTopK,
  kBeamStep,
  kSampleScan,
  kSampleChoose,
};
const char* name_of(Op op);
/// What the op computes, in a line.
const char* summary_of(Op op);

/// Facts about a problem that a row may require, as bits; each op computes its own.
enum ShapeFact : uint32_t {
  kAnyShape = 0,
  kRowsAtMost8 = 1u << 0,        // matmul: M <= 8
  kRowsAbove8 = 1u << 1,         // matmul: M > 8
  kDepthMultipleOf4 = 1u << 2,   // K (matmul) or head size (attention) in fours
  kDepthMultipleOf8 = 1u << 3,
  kDepthMultipleOf16 = 1u << 4,
  kDepthMultipleOf32 = 1u << 5,
  kColumnsMultipleOf4 = 1u << 6, // N (matmul) or row length (norm, softmax) in fours
  kColumnsMultipleOf8 = 1u << 7,
  kColumnsMultipleOf16 = 1u << 8,
  kHeadSizeAtMost64 = 1u << 9,
  kHeadSizeAtMost128 = 1u << 10,
  kOneQuery = 1u << 11,          // attention: q_len == 1
  kManyQueries = 1u << 12,       // attention: q_len >= 8
  kRowsMultipleOf16 = 1u << 13,
  kNoAncestry = 1u << 14,        // attention: keys of a row stand in that row (no beam indirection)
  kDepthMultipleOf64 = 1u << 15,
  kColumnsAtLeast256 = 1u << 16,
  kFewBanned = 1u << 17,         // top_k: room for at most 64 banned ids
  kRowsAbove64 = 1u << 18,       // matmul: M > 64
  kOneRow = 1u << 19,            // matmul: M == 1
  kColumnsAtMost1024 = 1u << 20,
  kQueriesAtLeast32 = 1u << 21,  // attention: q_len >= 32
};
using ShapeFacts = uint32_t;
std::string describe_shape_facts(ShapeFacts facts);

struct KernelTypes {
  DataType activation = DataType::kF32;
  DataType weight = DataType::kF32;
  bool operator==(const KernelTypes&) const = default;
};

/// What the SPIR-V of a row says of itself.
struct Reflection {
  uint32_t buffer_count = 0;    // storage buffers (descriptors or addresses)
  uint32_t push_constant_bytes = 0;
  uint32_t shared_memory_bytes = 0;  // with the defaults of specialization constants
  bool buffer_address = false;  // buffers come as addresses ahead of the parameters
};

/// One row of kernels.def.
struct Kernel {
  const char* id;
  Op op;
  const char* source;
  KernelTypes types;
  std::array<uint32_t, 14> constants;  // of constant id 0, then of 2, 3, ...
  uint32_t constant_count;
  FeatureSet needs;
  ShapeFacts shape;
  FeatureSet made_for;
  double tolerance;
  std::span<const uint32_t> spirv;  // empty: this build's shader compiler could not make it
  Reflection reflection;

  /// The row's n-th own constant, as CONSTANTS lists them (0: workgroup size).
  uint32_t constant(uint32_t index) const { return constants[index]; }
};

/// All rows, in the order of kernels.def. Reflection is done once, on first use.
std::span<const Kernel> kernels();
/// The row of that id, or null.
const Kernel* find_kernel(std::string_view id);

/// The table as Markdown: docs/kernels.md, which a test compares with it.
std::string kernel_table_markdown();

/// Invocations per workgroup of a row on a device.
uint32_t local_size(const Kernel& kernel, const Capabilities& device);

/// What an op asks of selection.
struct Problem {
  Op op;
  KernelTypes types;
  ShapeFacts facts = kAnyShape;
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
/// Why a row cannot serve a problem on a device, or "" when it can (whatever devices it is made for).
std::string why_not(const Kernel& kernel, const Capabilities& device, const Problem& problem);
/// The first row, best first, that can serve the problem and is made for the device.
Selection select_kernel(const Capabilities& device, const Problem& problem);
/// As select_kernel, but throws KernelError with every refusal when no row serves.
const Kernel& require_kernel(const Capabilities& device, const Problem& problem);

}  // namespace mulciber
