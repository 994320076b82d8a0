#include "conformance/op_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <glm/gtc/packing.hpp>

#include "base/hash.h"
#include "conformance/block_input.h"
#include "conformance/bounds.h"
#include "conformance/q8_1.h"

namespace mulciber::conformance {

double round_to(DataType type, double value) {
  switch (type) {
    case DataType::kF16: return glm::unpackHalf1x16(glm::packHalf1x16(static_cast<float>(value)));
    case DataType::kF32: return static_cast<float>(value);
    case DataType::kU32: return static_cast<double>(static_cast<uint32_t>(value));
    case DataType::kBF16: {
      const uint32_t bits = bits_of(static_cast<float>(value));
      return std::bit_cast<float>((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u);
    }
    default: return value;  // blocks are drawn by their own function
  }
}

CpuTensor u32_tensor(std::vector<uint32_t> words) {
  return {Shape{words.size()}, DataType::kU32, std::vector<double>(words.begin(), words.end())};
}

std::string name_part(double value) {
  std::string text = fmt::format("{:g}", static_cast<float>(value));
  std::erase(text, '+');
  for (size_t at; (at = text.find('-')) != std::string::npos;) text.replace(at, 1, "minus");
  std::replace(text.begin(), text.end(), '.', 'p');
  return text;
}

CaseInput normal_input(Shape shape, DataType type, double deviation, double mean) {
  if (is_block_type(type)) return block_input(shape, type, deviation, false);
  if (type == DataType::kQ8_1) return q8_1_input(shape, deviation, false);
  return {shape, type,
          [=](std::vector<double>& values, std::mt19937& random) {
            std::normal_distribution<double> normal(mean, deviation);
            for (double& value : values) value = normal(random);
          },
          nullptr};
}

CaseInput whole_input(Shape shape, DataType type, int largest) {
  if (is_block_type(type)) return block_input(shape, type, 0, true);
  if (type == DataType::kQ8_1) return q8_1_input(shape, 0, true);
  return {shape, type,
          [=](std::vector<double>& values, std::mt19937& random) {
            std::uniform_int_distribution<int> whole(-largest, largest - 1);
            for (double& value : values) {
              value = whole(random);
              if (value >= 0) ++value;
            }
          },
          nullptr};
}

KernelTypes plain_types(KernelTypes row) {
  if (row.weight == DataType::kHalf) row.weight = DataType::kF16;
  if (row.weight == DataType::kBlocks) row.weight = DataType::kQ4_0;
  if (row.weight == DataType::kGrids) row.weight = DataType::kIQ3_XXS;
  return row;
}

CaseInput words_input(std::vector<uint32_t> words) {
  return {Shape{words.size()}, DataType::kU32,
          [words = std::move(words)](std::vector<double>& values, std::mt19937&) {
            std::copy(words.begin(), words.end(), values.begin());
          },
          nullptr};
}

std::vector<CpuTensor> draw_inputs(const OpCase& op_case, uint64_t seed) {
  // A name must give equal inputs everywhere.
  Fnv1a hash(Fnv1a::kBegin ^ seed);
  hash.add(op_case.name);
  std::vector<CpuTensor> drawn;
  for (const CaseInput& input : op_case.inputs) {
    hash.add(static_cast<uint64_t>(input.type));
    std::mt19937 random(static_cast<uint32_t>(hash.value() ^ (hash.value() >> 32)));
    if (input.draw) {
      drawn.push_back(input.draw(random));
      continue;
    }
    CpuTensor tensor{input.shape, input.type, std::vector<double>(input.shape.elements())};
    input.fill(tensor.values, random);
    for (double& value : tensor.values) {
      value = round_to(input.type, value);
      // A device may flush numbers below the normal ones to zero; cases about such numbers declare
      // it.
      const double smallest = input.type == DataType::kF16 ? kSmallest16 : kSmallest32;
      if (!op_case.subnormal && input.type != DataType::kU32 && std::fabs(value) < smallest)
        value = 0;
    }
    drawn.push_back(std::move(tensor));
  }
  return drawn;
}

Arithmetic arithmetic_of(const Kernel* row, const Capabilities& device) {
  if (!row) {
    return {.half_operands = (device.features & kF16Operands) != 0,
            .bf16_operands = (device.features & kBF16Operands) != 0,
            .half_sums = device.has(kFastHalf)};
  }
  const bool matrices = (row->needs & kMatrixUnits) != 0 || (row->made_for & kPlainMatrices) != 0;
  const bool bf16 = row->types.weight == DataType::kBF16;
  return {.half_operands = matrices && !bf16,
          .bf16_operands = matrices && bf16,
          .half_sums = (row->made_for & kFastHalf) != 0};
}

Tensor words_of(const Tensor& tensor, DataType type, uint64_t first, uint64_t count) {
  Tensor part = tensor;
  part.shape = {count};
  part.type = type;
  part.byte_offset += first * 4;
  return part;
}

uint32_t bits_of(float value) { return std::bit_cast<uint32_t>(value); }

namespace {

/// Adds a case to a program that is never built, so neither memory nor pipelines are made.
void plan(ProgramBuilder& builder, const OpCase& op_case) {
  std::vector<Tensor> inputs;
  for (const CaseInput& input : op_case.inputs)
    inputs.push_back(builder.activation(input.shape, input.type));
  op_case.build(builder, inputs);
}

/// A device with all features, so that only the shape decides.
Capabilities ideal_device() {
  Capabilities c;
  c.name = "an ideal device";
  c.features = ~FeatureSet{0};
  c.max_storage_range = c.max_allocation = uint64_t{1} << 40;
  c.max_push_constants = 256;
  c.max_shared_memory = 1u << 20;
  c.max_invocations = c.max_local_size = 1024;
  c.max_groups = {~0u, ~0u, ~0u};
  c.max_storage_buffers = 16;
  c.storage_alignment = 16;
  c.subgroup_size = c.min_subgroup_size = c.max_subgroup_size = 32;
  return c;
}

}  // namespace

Problem problem_of(const OpCase& op_case, Op op) {
  static const Capabilities kIdeal = ideal_device();
  ProgramBuilder builder(kIdeal, op_case.name);
  try {
    plan(builder, op_case);
  } catch (const KernelError&) {
    // No row serves these types; the problem was noted before.
  }
  for (const Problem& problem : builder.problems()) {
    if (problem.op == op) return problem;
  }
  throw KernelError(name_of(op), op_case.name + " asks for no such op", "");
}

bool concerns(const OpCase& op_case, const Kernel& row) {
  const uint32_t id = op_case.needs_constant;
  if (id != 0 && std::ranges::count(row.reflection.specialization_ids, id) == 0) return false;
  const auto sums = row.made_for & kFastHalf ? OpCase::Sums::kF16 : OpCase::Sums::kF32;
  return op_case.sums == OpCase::Sums::kAny || op_case.sums == sums;
}

bool fills_tile(const Kernel& row, const OpCase& op_case) {
  const auto fills = [&](RowConstant side, uint64_t extent) {
    return extent == 0 || extent * 8 > uint64_t{row.find(side).value_or(0)} * 7;
  };
  return fills(RowConstant::TILE_M, op_case.tiled_rows) &&
         fills(RowConstant::TILE_N, op_case.tiled_columns) &&
         fills(RowConstant::TILE_Q, op_case.tiled_queries);
}

bool suits(const Kernel& row, const OpCase& op_case) {
  return concerns(op_case, row) && (row.shape & ~problem_of(op_case, row.op).facts) == 0;
}

std::vector<Node> nodes_of(const Capabilities& device, const OpCase& op_case, const Kernel* row) {
  ProgramBuilder builder(device, op_case.name);
  if (row) builder.force(*row);
  plan(builder, op_case);
  return builder.nodes();
}

const Kernel* chosen_row(const Capabilities& device, const OpCase& op_case, Op op) {
  return select_kernel(device, problem_of(op_case, op)).kernel;
}

}  // namespace mulciber::conformance
