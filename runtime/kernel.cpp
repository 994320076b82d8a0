#include "runtime/kernel.h"

#include <fmt/format.h>

#include <cstring>
#include <iterator>

#include "mulciber/error.h"
#include "runtime/op.h"
#include "runtime/row_subgroups.h"
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

// Makes `CONSTANTS(TILE_M = 64)` in kernels.def valid C++.
struct ConstantName {
  RowConstant constant;
  constexpr RowValue operator=(uint32_t value) const { return {constant, value}; }
};
#define ROW_CONSTANT_NAME(NAME) constexpr ConstantName NAME{RowConstant::NAME};
ROW_CONSTANTS(ROW_CONSTANT_NAME)
#undef ROW_CONSTANT_NAME

/// Whether a row that uses subgroup matrices, or bounds its number of subgroups, names the
/// constants from which least_subgroups() is computed.
constexpr bool names_its_subgroups(std::initializer_list<RowValue> named, FeatureSet needs) {
  const std::span<const RowValue> constants(named.begin(), named.size());
  const uint32_t most = value_of(constants, RowConstant::MOST_SUBGROUPS);
  const uint32_t least = least_subgroups(constants);
  const bool concerned = (needs & kSubgroupMatrices) != kNothing || most != 0 ||
                         value_of(constants, RowConstant::FRAGMENT_M) != 0;
  return concerned ? 0 < least && least <= most : least == 0;
}

KernelTypes types_of(DataType activation) { return {activation, activation}; }
KernelTypes types_of(DataType activation, DataType weight) { return {activation, weight}; }

#define TYPES(...)
#define DEFINES(...)
#define CONSTANTS(...) \
  { __VA_ARGS__ }
#define NEEDS(...) (__VA_ARGS__)
#define SHAPE(...)
#define FOR(...)
#define KERNEL(ID, OP, SOURCE, ROW_TYPES, ROW_DEFINES, ROW_CONSTANTS, ROW_NEEDS, ROW_SHAPE,    \
               ROW_FOR, TOLERANCE)                                                             \
  static_assert(names_its_subgroups(std::initializer_list<RowValue> ROW_CONSTANTS, ROW_NEEDS), \
                #ID " does not say how many subgroups share its tile");
#include "shaders/kernels.def"
#undef KERNEL
#undef FOR
#undef SHAPE
#undef NEEDS
#undef CONSTANTS
#undef DEFINES
#undef TYPES

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
  };
  return kNames[static_cast<size_t>(op)];
}

const char* summary_of(Op op) {
  static constexpr const char* kSummaries[] = {
#define OP(ENUMERATOR, NAME, SUMMARY) SUMMARY,
#include "shaders/ops.def"
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
    // The row says what the source needs; the use of buffer addresses follows from its SPIR-V.
    text += fmt::format(
        "| {} | {} | {}, {} | {} | {} | {} | {} | {:g} |\n", kernel.id, kernel.source,
        name_of(kernel.types.activation), name_of(kernel.types.weight), constants,
        describe_features(kernel.needs), describe_shape_facts(kernel.shape),
        kernel.made_for ? describe_features(kernel.made_for) : "any device", kernel.tolerance);
  }
  return text;
}

}  // namespace mulciber
