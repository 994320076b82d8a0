#include "conformance/repro.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <set>

#include "conformance/case_program.h"
#include "conformance/compare.h"
#include "mulciber/error.h"
#include "runtime/pipeline.h"
#include "runtime/recorder.h"

namespace mulciber::conformance {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kReproGuardBytes = 256;
constexpr uint64_t kAlignment = 256;
// Represents the only buffer of the repro; nothing is made on the device.
const VkBuffer kBuffer = reinterpret_cast<VkBuffer>(uintptr_t{1});

struct File {
  const char* name;
  const char* text;
};
const File kProgram[] = {
    {
        "repro.c",
#include "repro/repro.c.inc"
    },
    {
        "case_types.h",
#include "repro/case_types.h.inc"
    },
    {
        "recent_vulkan.h",
#include "repro/recent_vulkan.h.inc"
    },
    {
        "device.h",
#include "repro/device.h.inc"
    },
    {
        "pipeline.h",
#include "repro/pipeline.h.inc"
    },
    {
        "compare.h",
#include "repro/compare.h.inc"
    },
    {
        "CMakeLists.txt",
#include "repro/CMakeLists.txt.inc"
    },
};

uint64_t round_up(uint64_t value, uint64_t step) { return (value + step - 1) / step * step; }

/// The nodes of a case with an offset for every tensor in one buffer: first the inputs, like in the
/// suite's first run, then the arena.
class Planned {
 public:
  Planned(Device& device, const OpCase& op_case, const Kernel* row, uint64_t seed)
      : builder(device, op_case.name) {
    std::mt19937 random(static_cast<uint32_t>(seed));
    const uint64_t step = std::max<uint64_t>(16, device.capabilities().storage_alignment);
    uint64_t at = 0;
    for (const CaseInput& input : op_case.inputs) {
      Tensor tensor;
      tensor.shape = input.shape;
      tensor.type = input.type;
      tensor.view.buffer = kBuffer;
      tensor.view.offset = at + kReproGuardBytes + random() % 16 * step;
      tensor.view.size = round_up(std::max<uint64_t>(4, tensor.bytes()), 4);
      at = round_up(tensor.view.offset + tensor.view.size + kReproGuardBytes, kAlignment);
      inputs.push_back(tensor);
    }
    builder.set_guard(kReproGuardBytes);
    if (row) builder.force(*row);
    outputs = op_case.build(builder, inputs);
    for (const Tensor& output : outputs) builder.keep(output);
    plan = builder.plan();
    arena_ = at;
    bytes = round_up(at + plan.arena_bytes, kAlignment);
  }

  BufferView view(const Tensor& tensor) const {
    BufferView view;
    view.buffer = kBuffer;
    view.offset =
        tensor.byte_offset +
        (tensor.arena_id >= 0 ? arena_ + plan.tensors[tensor.arena_id].offset : tensor.view.offset);
    view.size = tensor.bytes();
    return view;
  }
  std::vector<ResolvedUse> uses(const Node& node) const {
    std::vector<ResolvedUse> resolved;
    for (const BufferUse& use : node.buffers) resolved.push_back({view(use.tensor), use.access});
    return resolved;
  }
  /// Sorted ranges that belong to some tensor: everything else must stay poison.
  std::vector<std::pair<uint64_t, uint64_t>> owned() const {
    std::vector<std::pair<uint64_t, uint64_t>> ranges;
    for (const Tensor& input : inputs) ranges.emplace_back(input.view.offset, input.view.size);
    for (const PlannedTensor& tensor : plan.tensors) {
      // 16-bit numbers share a word in pairs, so a tensor owns the whole of its last word.
      if (tensor.first_use >= 0)
        ranges.emplace_back(arena_ + tensor.offset, round_up(tensor.bytes, 4));
    }
    std::sort(ranges.begin(), ranges.end());
    return ranges;
  }

  ProgramBuilder builder;
  std::vector<Tensor> inputs, outputs;
  MemoryPlan plan;
  uint64_t bytes = 0;

 private:
  uint64_t arena_ = 0;
};

/// The C program's names of features.
std::string c_features(FeatureSet features) {
  static const std::pair<FeatureSet, const char*> kNames[] = {
      {kStorage16, "STORAGE_16"},
      {kStorage8, "STORAGE_8"},
      {kFloat16, "FLOAT_16"},
      {kTexelLoads, "TEXEL_LOADS"},
      {kBufferAddress, "BUFFER_ADDRESS"},
      {kSubgroupSizeControl, "SUBGROUP_SIZE_CONTROL"},
      {kIntegerDot, "INTEGER_DOT"},
      {kCooperativeMatrix | kMatrixUnits, "COOPERATIVE_MATRIX"},
      {kFlexibleMatrices, "FLEXIBLE_MATRICES"},
      {kWorkgroupMatrices, "WORKGROUP_MATRICES"},
      {kBF16Operands, "BF16_MATRICES"},
      {kIntegerMatrices, "INTEGER_MATRICES"}};
  std::string text;
  for (const auto& [bits, name] : kNames) {
    if (features & bits) text += (text.empty() ? "" : " | ") + std::string(name);
  }
  return text.empty() ? "0" : "(" + text + ")";
}

const char* c_type(DataType type) {
  switch (type) {
    case DataType::kF32: return "F32";
    case DataType::kF16: return "F16";
    case DataType::kU32: return "U32";
    case DataType::kQ8_0: return "Q8_0";
    case DataType::kQ8_1: return "Q8_1";
    default: break;
  }
  throw ModelError("repro", "an output of this type cannot be compared by the C program", "");
}

// A driver's name may contain any character.
std::string c_string(const std::string& text) {
  std::string quoted = "\"";
  for (unsigned char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c >= ' ' && c < 127 ? static_cast<char>(c) : '?';
  }
  return quoted + "\"";
}

std::string shader_file(const Kernel& kernel) { return std::string(kernel.id) + ".spv"; }
std::string tensor_file(const char* what, size_t index) {
  return fmt::format("{}{}.bin", what, index);
}

void add_node(std::string& tables, std::string& list, size_t index, const Node& node,
              const Planned& planned, const Capabilities& c, HazardTracker& hazards,
              bool new_layer) {
  PipelineKey key{node.kernel, {}};
  for (const SpecializationConstant& constant : node.constants)
    key.constants.push_back({constant.id, constant.value});
  std::sort(key.constants.begin(), key.constants.end());
  const auto constants = specialization(key, c);
  tables += fmt::format("\nstatic const struct constant constants{}[] = {{", index);
  for (const auto& [id, value] : constants) tables += fmt::format("{{{}, {}}}, ", id, value);
  tables += fmt::format("}};\nstatic const struct range buffers{}[] = {{", index);
  const std::vector<ResolvedUse> uses = planned.uses(node);
  for (const ResolvedUse& use : uses) {
    // The recorder binds whole words.
    tables += fmt::format("{{{}, {}}}, ", use.view.offset, round_up(use.view.size, 4));
  }
  tables += fmt::format("}};\nstatic const uint32_t push{}[] = {{", index);
  for (size_t at = 0; at < node.params.size(); at += 4) {
    uint32_t word;
    std::memcpy(&word, node.params.data() + at, 4);
    tables += fmt::format("{:#x}, ", word);
  }
  if (node.params.empty()) tables += "0";
  tables += "};\n";

  uint32_t texels = 0;
  for (const uint32_t binding : node.kernel->reflection.texels) texels |= 1u << binding;
  const bool waits = new_layer || hazards.conflicts(uses);
  if (waits) hazards.clear();
  hazards.note(uses);
  list += fmt::format(
      "    {{\"{}\", {}, constants{}, {}, buffers{}, {}, {:#x}, push{}, {}, {}, {}, {}, {{{}, {}, "
      "{}}}}},\n",
      shader_file(*node.kernel), c_string(node.label), index, constants.size(), index, uses.size(),
      texels, index, node.params.size() / 4, node.kernel->reflection.buffer_address,
      requires_subgroup_size(*node.kernel, c), waits, node.groups[0], node.groups[1],
      node.groups[2]);
}

std::string case_header(const SuiteCase& suite_case, const Planned& planned, const Capabilities& c,
                        double usual_row_error, const std::vector<CpuTensor>& expected) {
  FeatureSet needed = kNothing;
  for (const Node& node : planned.builder.nodes()) needed |= node.kernel->needs;
  std::string text = fmt::format(
      "/* Written by `mulciber conform --repro`: see README.md. Offsets and sizes are bytes. */\n\n"
      "#define CASE_NAME {}\n#define DEVICE_NAME {}\n"
      "#define MEMORY_BYTES UINT64_C({})\n"
      "#define FEATURES_NEEDED {}\n#define FEATURES_ENABLED {}\n"
      "#define SUBGROUP_SIZE {}\n#define SUBGROUPS_NEEDED {}\n",
      c_string(suite_case.name), c_string(c.name), planned.bytes, c_features(needed),
      c_features(c.features), c.subgroup_size,
      (needed &
       (kSubgroupArithmetic | kSubgroupShuffle | kCooperativeMatrix | kSubgroupMatrices)) != 0);
  std::string list;
  HazardTracker hazards;
  const std::vector<Node>& nodes = planned.builder.nodes();
  for (size_t i = 0; i < nodes.size(); ++i) {
    add_node(text, list, i, nodes[i], planned, c, hazards,
             i > 0 && nodes[i].layer != nodes[i - 1].layer);
  }
  text += "\nstatic const struct node nodes[] = {\n" + list +
          "};\n\nstatic const struct input inputs[] = {\n";
  for (size_t i = 0; i < planned.inputs.size(); ++i) {
    const BufferView& view = planned.inputs[i].view;
    text += fmt::format("    {{\"{}\", {{{}, {}}}}},\n", tensor_file("input", i), view.offset,
                        view.size);
  }
  text += "};\n\nstatic const struct output outputs[] = {\n";
  for (size_t i = 0; i < expected.size(); ++i) {
    const uint64_t columns = std::max<uint64_t>(1, expected[i].shape.columns());
    const std::string bounds =
        expected[i].bounds.empty() ? "NULL" : '"' + tensor_file("bounds", i) + '"';
    text += fmt::format("    {{\"{}\", {}, {}, {}, {}, {}, {:g}}},\n", tensor_file("expected", i),
                        bounds, c_type(expected[i].type), planned.view(planned.outputs[i]).offset,
                        expected[i].values.size() / columns, columns, usual_row_error);
  }
  text +=
      "};\n\n/* Tensors; every other byte must stay as it was. */\nstatic const struct range "
      "owned[] = {\n";
  for (const auto& [offset, bytes] : planned.owned())
    text += fmt::format("    {{{}, {}}},\n", offset, bytes);
  return text + "};\n";
}

std::string readme(const SuiteCase& suite_case, const Planned& planned, const Capabilities& c,
                   const CaseResult* result, const std::vector<CpuTensor>& inputs,
                   const std::vector<CpuTensor>& expected, uint64_t seed) {
  std::string text = fmt::format(
      "# {}\n\nA case of Mulciber's conformance suite, to be run without Mulciber.\n\n"
      "    cmake -S . -B build && cmake --build build && build/repro\n\n"
      "Exit code: 0 all results right and equal in every run, 1 wrong, 2 the case could not be "
      "run. `--repeat N` runs\nit N times (20 without), `--device N` on another device. Messages "
      "of "
      "the validation layer: set\n`VK_INSTANCE_LAYERS=VK_LAYER_KHRONOS_validation`.\n\n",
      suite_case.name);
  std::set<const Kernel*> rows;
  for (const Node& node : planned.builder.nodes()) rows.insert(node.kernel);
  std::set<Op> ops;
  for (const Kernel* row : rows) ops.insert(row->op);
  text += "## What it computes\n\n";
  for (Op op : ops) text += fmt::format("- {}: {}\n", name_of(op), summary_of(op));
  text += fmt::format(
      "\nStorage types (activations, weights): {}.\n\n| dispatch | shader | from | workgroups |\n"
      "| --- | --- | --- | --- |\n",
      suite_case.types);
  for (const Node& node : planned.builder.nodes()) {
    text += fmt::format("| {} | {} | {} | {} x {} x {} |\n", node.label, shader_file(*node.kernel),
                        node.kernel->source, node.groups[0], node.groups[1], node.groups[2]);
  }
  text += fmt::format("\n| file | holds |\n| --- | --- |\n");
  for (size_t i = 0; i < inputs.size(); ++i) {
    text += fmt::format("| {} | input {}: {} {}, row-major, as the shader reads it |\n",
                        tensor_file("input", i), i, name_of(inputs[i].type),
                        inputs[i].shape.to_string());
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    text += fmt::format("| {} | what output {} must be: {} doubles, for a result that is {} |\n",
                        tensor_file("expected", i), i, expected[i].shape.to_string(),
                        name_of(expected[i].type));
    if (expected[i].bounds.empty()) continue;
    text += fmt::format(
        "| {} | how far each of them may be off: doubles, derived from the operations between "
        "input and "
        "output |\n",
        tensor_file("bounds", i));
  }
  text +=
      "\nAll tensors stand in one buffer, at the offsets of case.h. Before each run everything "
      "else in it is set to "
      "0xffdeffde\n(NaN as f32 and as f16); it must stay so outside the tensors.\n\n## Where it "
      "was seen\n\n";
  text += fmt::format(
      "- device: {}\n- driver: {} {}\n- Vulkan {}.{}.{}, vendor {:#x}, device {:#x}, driver "
      "version {:#x}\n"
      "- subgroups of {}\n- features enabled: {}\n- seed of the inputs: {}\n",
      c.name, c.driver_name, c.driver_info, VK_VERSION_MAJOR(c.api_version),
      VK_VERSION_MINOR(c.api_version), VK_VERSION_PATCH(c.api_version), c.vendor_id, c.device_id,
      c.packed_driver_version, c.subgroup_size, describe_features(c.features & ~kTraits), seed);
  std::string limits;
  for (const std::string& limit : c.applied_limits) limits += (limits.empty() ? "" : ",") + limit;
  if (!limits.empty()) text += fmt::format("- with the limits {}\n", limits);
  text += "\n## What came out\n\n";
  if (!result) {
    return text +
           "Not known: the process that ran the case did not come to its end, or has not run it.\n";
  }
  return text + fmt::format("{}{}{}. {} runs compared bit by bit.\n", name_of(result->status),
                            result->detail.empty() ? "" : ": ", result->detail, result->repeats);
}

void write_file(const fs::path& file, std::string_view bytes) {
  std::ofstream out(file, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!out.flush()) {
    throw ModelError(file.string(), "cannot be written", "choose a folder that can be written to");
  }
}

template <typename T>
std::string_view bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

}  // namespace

std::vector<std::string> write_repro(Device& device, const SuiteCase& suite_case, uint64_t seed,
                                     const CaseResult* result, const fs::path& folder) {
  if (!suite_case.op_case) {
    throw ModelError(suite_case.name, "is more than one program, and cannot be written as a repro",
                     "take a case of the op that fails");
  }
  const OpCase& op_case = *suite_case.op_case;
  const Kernel* row = suite_case.row.empty() ? nullptr : find_kernel(suite_case.row);
  if (row) {
    if (std::string reason = why_not_runnable(*row, device.capabilities()); !reason.empty()) {
      throw KernelError(row->id, reason, "");
    }
  }
  const Planned planned(device, op_case, row, seed + 1);
  const std::vector<CpuTensor> inputs = draw_inputs(op_case, seed);
  const std::vector<CpuTensor> expected =
      op_case.reference(inputs, arithmetic_of(row, device.capabilities()));

  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    throw ModelError(folder.string(), "cannot be made: " + error.message(),
                     "choose another folder");
  std::vector<std::string> names;
  auto write = [&](const std::string& name, std::string_view bytes) {
    write_file(folder / name, bytes);
    names.push_back(name);
  };
  const Capabilities& c = device.capabilities();
  const Quality quality = quality_of(row);
  const double usual = std::isfinite(quality.row_error) ? quality.row_error : 0;
  write("README.md", readme(suite_case, planned, c, result, inputs, expected, seed));
  for (const File& file : kProgram) write(file.name, file.text);
  write("case.h", case_header(suite_case, planned, c, usual, expected));
  std::set<const Kernel*> rows;
  for (const Node& node : planned.builder.nodes()) rows.insert(node.kernel);
  for (const Kernel* used : rows) {
    write(shader_file(*used),
          {reinterpret_cast<const char*>(used->spirv.data()), used->spirv.size_bytes()});
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    write(tensor_file("input", i), bytes_of(to_bytes(inputs[i])));
  for (size_t i = 0; i < expected.size(); ++i)
    write(tensor_file("expected", i), bytes_of(expected[i].values));
  for (size_t i = 0; i < expected.size(); ++i) {
    if (!expected[i].bounds.empty()) write(tensor_file("bounds", i), bytes_of(expected[i].bounds));
  }
  return names;
}

}  // namespace mulciber::conformance
