#include "apps/kernels/compile_rows.h"

#include <algorithm>
#include <cctype>

#include "conformance/op_case.h"
#include "runtime/recorder.h"

namespace mulciber::apps {
namespace {

using conformance::OpCase;

std::string lower_case(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

/// How a driver names a figure, in lower case. Several of one figure are added up.
struct Naming {
  double PipelineFigures::*figure;
  const char* name;
};
// RADV, ANV, NVK, Turnip, Honeykrisp, panvk and v3dv of Mesa 26.1 and 25.0; NVIDIA's own.
constexpr Naming kNamings[] = {
    {&PipelineFigures::registers, "vgprs"},
    {&PipelineFigures::registers, "max live registers"},
    {&PipelineFigures::registers, "number of gprs"},
    {&PipelineFigures::registers, "gprs"},
    {&PipelineFigures::registers, "register count"},
    {&PipelineFigures::registers, "registers used"},
    {&PipelineFigures::registers, "work registers"},
    {&PipelineFigures::registers, "max temps"},
    {&PipelineFigures::spills, "spills"},
    {&PipelineFigures::spills, "spill count"},
    {&PipelineFigures::spills, "spilled vgprs"},
    {&PipelineFigures::spills, "spills to memory"},
    {&PipelineFigures::spills, "stp count"},
    {&PipelineFigures::spills, "tmu spills"},
    {&PipelineFigures::fills, "fills"},
    {&PipelineFigures::fills, "fill count"},
    {&PipelineFigures::fills, "fills from memory"},
    {&PipelineFigures::fills, "ldp count"},
    {&PipelineFigures::fills, "tmu fills"},
    {&PipelineFigures::scratch, "scratch"},
    {&PipelineFigures::scratch, "scratch size"},
    {&PipelineFigures::scratch, "scratch memory size"},
    {&PipelineFigures::scratch, "spill size"},
    {&PipelineFigures::scratch, "slm size"},
    {&PipelineFigures::scratch, "local memory size"},
    {&PipelineFigures::scratch, "private memory size"},
    {&PipelineFigures::shared, "lds size"},
    {&PipelineFigures::shared, "workgroup memory size"},
    {&PipelineFigures::shared, "shared memory size"},
    {&PipelineFigures::occupancy, "subgroups per simd"},
    {&PipelineFigures::occupancy, "max warps/sm"},
    {&PipelineFigures::occupancy, "max waves per core"},
    {&PipelineFigures::occupancy, "threads"},
    {&PipelineFigures::occupancy, "thread count"},
    {&PipelineFigures::code_bytes, "code size"},
    {&PipelineFigures::code_bytes, "binary size"},
    {&PipelineFigures::instructions, "instruction count"},
    {&PipelineFigures::instructions, "instructions"},
    {&PipelineFigures::instructions, "instrs"},
};

}  // namespace

PipelineFigures figures_of(const std::vector<PipelineStatistic>& statistics) {
  PipelineFigures figures;
  for (const PipelineStatistic& statistic : statistics) {
    const std::string name = lower_case(statistic.name);
    for (const Naming& naming : kNamings) {
      if (name != naming.name) continue;
      double& figure = figures.*naming.figure;
      figure = std::max(figure, 0.0) + statistic.value;
      break;
    }
  }
  return figures;
}

std::vector<CompiledRow> pipelines_of(const std::vector<const Kernel*>& rows,
                                      const Capabilities& device, const RowSelection& selection) {
  std::vector<CompiledRow> all;
  for (const Kernel* row : rows) {
    const size_t first = all.size();
    const std::string shape_format = conformance::op_cases(row->op).shape_format();
    for_each_case(
        selection, *row,
        [&](const KernelTypes& types, const std::vector<uint64_t>& shape, const OpCase& op_case) {
          const bool chosen = conformance::chosen_row(device, op_case, row->op) == row;
          for (const Node& node : conformance::nodes_of(device, op_case, row)) {
            if (node.kernel != row) continue;
            const PipelineKey key = pipeline_key(node, device);
            auto known = std::find_if(
                all.begin() + static_cast<ptrdiff_t>(first), all.end(),
                [&](const CompiledRow& other) { return other.types == types && other.key == key; });
            if (known == all.end()) {
              all.push_back({row, types, key, shape_format});
              known = all.end() - 1;
            }
            if (!known->shapes.empty() && known->shapes.back() == shape) continue;
            known->shapes.push_back(shape);
            known->groups.push_back(node.groups);
            if (chosen) known->chosen_for.push_back(shape);
          }
        });
  }
  return all;
}

}  // namespace mulciber::apps
