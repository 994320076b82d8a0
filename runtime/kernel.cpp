#include "runtime/kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "mulciber/error.h"
#include "runtime/choices.h"
#include "runtime/op.h"
#include "runtime/spirv_modules.h"
#include "runtime/spirv_reflection.h"

namespace mulciber {
namespace {

struct Row {
  const char* id;
  Op op;
  const char* source;
  KernelTypes types;
  std::vector<RowValue> constants;
  FeatureSet needs;
  ShapeFacts shape;
  FeatureSet made_for;
  double tolerance;
};

constexpr DataType F32 = DataType::kF32;
constexpr DataType F16 = DataType::kF16;
constexpr DataType BF16 = DataType::kBF16;
constexpr DataType Q8_0 = DataType::kQ8_0;
constexpr DataType Q8_1 = DataType::kQ8_1;
constexpr DataType HALF = DataType::kHalf;
constexpr DataType BLOCKS = DataType::kBlocks;
constexpr DataType GRIDS = DataType::kGrids;

// What CONSTANTS(TILE_M = 64) is made of.
struct ConstantName {
  RowConstant constant;
  constexpr RowValue operator=(uint32_t value) const { return {constant, value}; }
};
#define ROW_CONSTANT_NAME(NAME) constexpr ConstantName NAME{RowConstant::NAME};
ROW_CONSTANTS(ROW_CONSTANT_NAME)
#undef ROW_CONSTANT_NAME

KernelTypes types_of(DataType activation) { return {activation, activation}; }
KernelTypes types_of(DataType activation, DataType weight) { return {activation, weight}; }

std::vector<Row> rows() {
#define TYPES(...) types_of(__VA_ARGS__)
#define DEFINES(...)
#define CONSTANTS(...) \
  { __VA_ARGS__ }
#define NEEDS(...) (__VA_ARGS__)
#define SHAPE(...) (__VA_ARGS__)
#define FOR(...) (__VA_ARGS__)
#define KERNEL(ID, OP, SOURCE, ROW_TYPES, ROW_DEFINES, ROW_CONSTANTS, ROW_NEEDS, ROW_SHAPE, \
               ROW_FOR, TOLERANCE)                                                          \
  {#ID,       Op::k##OP, #SOURCE, ROW_TYPES, std::vector<RowValue> ROW_CONSTANTS,           \
   ROW_NEEDS, ROW_SHAPE, ROW_FOR, TOLERANCE},
  return {
#include "shaders/kernels.def"
  };
#undef KERNEL
#undef FOR
#undef SHAPE
#undef NEEDS
#undef CONSTANTS
#undef DEFINES
#undef TYPES
}

std::vector<Kernel> build_table() {
  std::vector<Kernel> table;
  for (const Row& row : rows()) {
    Kernel kernel{};
    kernel.id = row.id;
    kernel.op = row.op;
    kernel.source = row.source;
    kernel.types = row.types;
    kernel.constants = row.constants;
    kernel.needs = row.needs;
    kernel.shape = row.shape;
    kernel.made_for = row.made_for;
    kernel.tolerance = row.tolerance;
    for (const SpirvModule& module : spirv_modules()) {
      if (std::strcmp(module.id, row.id) != 0) continue;
      kernel.spirv = module.words;
      kernel.pinned = module.pinned;
    }
    if (!kernel.spirv.empty()) {
      kernel.reflection = reflect_spirv(kernel.id, kernel.spirv);
      if (kernel.reflection.buffer_address) kernel.needs |= kBufferAddress;
    }
    table.push_back(kernel);
  }
  return table;
}

}  // namespace

const char* name_of(RowConstant constant) {
  switch (constant) {
#define ROW_CONSTANT_CASE(NAME) \
  case RowConstant::NAME: return #NAME;
    ROW_CONSTANTS(ROW_CONSTANT_CASE)
#undef ROW_CONSTANT_CASE
  }
  return "?";
}

std::optional<uint32_t> Kernel::find(RowConstant constant) const {
  for (const RowValue& named : constants) {
    if (named.constant == constant) return named.value;
  }
  return std::nullopt;
}

uint32_t Kernel::constant(RowConstant constant) const {
  if (const std::optional<uint32_t> value = find(constant)) return *value;
  throw KernelError(id, fmt::format("its row of kernels.def does not name {}", name_of(constant)),
                    "");
}

const char* name_of(Op op) {
  static constexpr const char* kNames[] = {
#define OP(ENUMERATOR, NAME, SUMMARY) #NAME,
#include "shaders/ops.def"
#undef OP
  };
  return kNames[static_cast<size_t>(op)];
}

const char* summary_of(Op op) {
  static constexpr const char* kSummaries[] = {
#define OP(ENUMERATOR, NAME, SUMMARY) SUMMARY,
#include "shaders/ops.def"
#undef OP
  };
  return kSummaries[static_cast<size_t>(op)];
}

std::string describe_shape_facts(ShapeFacts facts) {
  static const std::pair<ShapeFact, const char*> kNames[] = {
      {kRowsAtMost8, "at most 8 rows"},
      {kRowsAbove8, "more than 8 rows"},
      {kOneRow, "one row"},
      {kRowsAbove64, "more than 64 rows"},
      {kRowsMultipleOf16, "rows in multiples of 16"},
      {kDepthMultipleOf4, "depth a multiple of 4"},
      {kDepthMultipleOf8, "depth a multiple of 8"},
      {kDepthMultipleOf16, "depth a multiple of 16"},
      {kDepthMultipleOf32, "depth a multiple of 32"},
      {kDepthMultipleOf64, "depth a multiple of 64"},
      {kColumnsMultipleOf4, "columns a multiple of 4"},
      {kColumnsMultipleOf8, "columns a multiple of 8"},
      {kColumnsMultipleOf16, "columns a multiple of 16"},
      {kColumnsAtLeast256, "at least 256 columns"},
      {kColumnsAtMost1024, "at most 1024 columns"},
      {kHeadSizeAtMost64, "head size up to 64"},
      {kHeadSizeAtMost128, "head size up to 128"},
      {kHeadSizeAtMost640, "head size up to 640, that of values 512"},
      {kOneQuery, "one query per row"},
      {kManyQueries, "8 queries or more"},
      {kQueriesAtLeast32, "32 queries or more"},
      {kManyPositions, "8 positions or more"},
      {kSplitKeys, "one position of few rows over many keys, and split counters"},
      {kFewKeyHeads, "at most 4 heads and rows of keys"},
      {kContiguousKeys, "contiguous keys"},
      {kWholeTiles, "tiles within a block of the pattern"},
      {kNoAncestry, "no beam ancestry"},
      {kScaledProducts, "a softmax of scaled products"},
      {kFewBanned, "at most 64 banned ids"},
  };
  std::string text;
  for (const auto& [fact, name] : kNames) {
    if (facts & fact) text += (text.empty() ? "" : ", ") + std::string(name);
  }
  return text;
}

bool serves(KernelTypes row, KernelTypes problem) {
  if (row.activation != problem.activation) return false;
  return row.weight == problem.weight ||
         (row.weight == DataType::kBlocks &&
          (row.activation == DataType::kQ8_1
               ? multiplies_integers(problem.weight)
               : is_block_type(problem.weight) && !is_grid_type(problem.weight))) ||
         (row.weight == DataType::kGrids && is_grid_type(problem.weight)) ||
         (row.weight == DataType::kHalf &&
          (problem.weight == DataType::kF16 || problem.weight == DataType::kBF16));
}

std::vector<KernelTypes> concrete_types(KernelTypes row) {
  std::vector<KernelTypes> all;
  for (auto type = DataType::kF32; type < DataType::kHalf;
       type = static_cast<DataType>(static_cast<int>(type) + 1)) {
    if (serves(row, {row.activation, type})) all.push_back({row.activation, type});
  }
  return all;
}

std::span<const Kernel> kernels() {
  static const std::vector<Kernel> table = build_table();
  return table;
}

const Kernel* find_kernel(std::string_view id) {
  for (const Kernel& kernel : kernels()) {
    if (id == kernel.id) return &kernel;
  }
  return nullptr;
}

std::string kernel_table_markdown() {
  std::string text =
      "# Kernels\n\n"
      "Generated by `mulciber devices --kernels` from `shaders/kernels.def`; best first within "
      "each op. A row serves a\n"
      "problem when the device has what it needs and the shape fits; selection takes the first "
      "that does and is made for\n"
      "the device. Constants: what `shaders/row_constants.h` names. Tolerance: root-mean-square "
      "error of an output row\n"
      "over that of the expected values.\n";
  Op last = Op::kMatmul;
  bool first = true;
  for (const Kernel& kernel : kernels()) {
    if (first || kernel.op != last) {
      text += fmt::format(
          "\n## {}\n\n| row | source | activations, weights | constants | needs | shape | made for "
          "| "
          "tolerance |\n"
          "| --- | --- | --- | --- | --- | --- | --- | --- |\n",
          name_of(kernel.op));
    }
    first = false;
    last = kernel.op;
    std::string constants;
    for (const RowValue& named : kernel.constants) {
      constants += fmt::format("{}{} = {}", constants.empty() ? "" : ", ", name_of(named.constant),
                               named.value);
    }
    // What the source needs is in the row; buffer addresses follow from its SPIR-V.
    text += fmt::format(
        "| {} | {} | {}, {} | {} | {} | {} | {} | {:g} |\n", kernel.id, kernel.source,
        name_of(kernel.types.activation), name_of(kernel.types.weight), constants,
        describe_features(kernel.needs), describe_shape_facts(kernel.shape),
        kernel.made_for ? describe_features(kernel.made_for) : "any device", kernel.tolerance);
  }
  return text;
}

uint32_t local_size(const Kernel& kernel, const Capabilities& device) {
  const uint32_t size = kernel.constant(RowConstant::LOCAL_SIZE);
  if (const std::optional<uint32_t> most = kernel.find(RowConstant::MOST_SUBGROUPS)) {
    const uint32_t lanes = kernel.find(RowConstant::PLAIN_LANES).value_or(device.subgroup_size);
    return std::min(size, *most * lanes);
  }
  return size == 0 ? device.subgroup_size : size;
}

std::string why_not_runnable(const Kernel& kernel, const Capabilities& device) {
  if (kernel.spirv.empty())
    return "not in this build: it was told to leave out what its shader compiler cannot make";
  for (size_t i = 0; i < device.denied_rows.size(); ++i) {
    if (device.denied_rows[i] == kernel.id)
      return "denied on this driver: " + device.denied_reasons[i];
  }
  if (FeatureSet missing = kernel.needs & ~device.features) {
    return "the device lacks " + describe_features(missing);
  }
  if (uint32_t size = local_size(kernel, device);
      size > device.max_invocations || size > device.max_local_size) {
    return fmt::format("needs {} invocations per workgroup, the device has {}", size,
                       std::min(device.max_invocations, device.max_local_size));
  }
  if (kernel.reflection.shared_memory_bytes > device.max_shared_memory) {
    return fmt::format("needs {} bytes of shared memory, the device has {}",
                       kernel.reflection.shared_memory_bytes, device.max_shared_memory);
  }
  if (!kernel.reflection.buffer_address &&
      kernel.reflection.buffer_count > device.max_storage_buffers) {
    return fmt::format("binds {} storage buffers, the device has {}",
                       kernel.reflection.buffer_count, device.max_storage_buffers);
  }
  if (kernel.reflection.push_constant_bytes > device.max_push_constants) {
    return fmt::format("needs {} bytes of push constants, the device has {}",
                       kernel.reflection.push_constant_bytes, device.max_push_constants);
  }
  return "";
}

std::string why_not(const Kernel& kernel, const Capabilities& device, const Problem& problem) {
  if (!serves(kernel.types, problem.types)) {
    return fmt::format("is for {} activations with {} weights", name_of(kernel.types.activation),
                       name_of(kernel.types.weight));
  }
  if (ShapeFacts missing = kernel.shape & ~problem.facts) {
    return "needs " + describe_shape_facts(missing);
  }
  return why_not_runnable(kernel, device);
}

namespace {

bool has_passed(const Kernel& kernel, const Capabilities& device) {
  return std::ranges::count(device.passed_rows, kernel.id) > 0;
}

/// The row that measurement chose, or null where there is none that still serves.
const Kernel* measured_choice(const Capabilities& device, const Problem& problem) {
  if (device.choices.empty() || problem.extents.empty()) return nullptr;
  const auto choice = device.choices.find(choice_key(problem));
  const Kernel* row = choice == device.choices.end() ? nullptr : find_kernel(choice->second);
  if (row == nullptr || !device.has(row->made_for)) return nullptr;
  const bool tested = device.passed_rows.empty() || has_passed(*row, device);
  return tested && why_not(*row, device, problem).empty() ? row : nullptr;
}

}  // namespace

Selection select_kernel(const Capabilities& device, const Problem& problem) {
  Selection selection;
  if (const Kernel* chosen = measured_choice(device, problem)) {
    selection.kernel = chosen;
    return selection;
  }
  const Kernel* untested = nullptr;  // the best of those without a verdict
  size_t better_than_untested = 0;
  for (const Kernel& kernel : kernels()) {
    if (kernel.op != problem.op) continue;
    std::string reason = why_not(kernel, device, problem);
    if (reason.empty() && !device.has(kernel.made_for)) {
      reason = "is made for " + describe_features(kernel.made_for & ~device.features);
    }
    // Where no row was tested (the self-test is off, or the suite runs) the first one serves.
    if (reason.empty() && (device.passed_rows.empty() || has_passed(kernel, device))) {
      selection.kernel = &kernel;
      return selection;
    }
    if (reason.empty()) {
      if (!untested) {
        untested = &kernel;
        better_than_untested = selection.passed_over.size();
      }
      reason = "is not yet tested on this driver";
    }
    selection.passed_over.push_back({&kernel, std::move(reason)});
  }
  if (untested) {
    selection.passed_over.erase(
        selection.passed_over.begin() + static_cast<ptrdiff_t>(better_than_untested),
        selection.passed_over.end());
    selection.kernel = untested;
  }
  return selection;
}

const Kernel& require_kernel(const Capabilities& device, const Problem& problem) {
  Selection selection = select_kernel(device, problem);
  if (selection.kernel) return *selection.kernel;
  std::string reasons;
  for (const Refusal& refusal : selection.passed_over) {
    reasons += fmt::format("\n  {}: {}", refusal.kernel->id, refusal.reason);
  }
  throw KernelError(name_of(problem.op),
                    fmt::format("no kernel serves {} activations with {} weights on {}:{}",
                                name_of(problem.types.activation), name_of(problem.types.weight),
                                device.name, reasons),
                    "take fewer capabilities away, or use another storage type");
}

}  // namespace mulciber
