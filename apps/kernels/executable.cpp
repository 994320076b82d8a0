#include "apps/kernels/executable.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

namespace mulciber::apps {
namespace {

std::string lower_case(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

/// A driver's name of a figure, in lower case. Values of several names of one figure are added up.
struct Naming {
  double PipelineFigures::*figure;
  const char* name;
};
// The names are those of RADV, ANV, NVK, Turnip, Honeykrisp, panvk and v3dv of Mesa 26.1 and 25.0,
// and of NVIDIA's own driver.
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

nlohmann::json loop_json(const InnerLoop& loop) {
  return {{"multiply_adds", loop.multiply_adds},
          {"instructions", loop.instructions},
          {"operations",
           {{"fma", loop.fma},
            {"matrix", loop.matrix},
            {"arithmetic", loop.arithmetic},
            {"memory", loop.memory},
            {"shared", loop.shared},
            {"scalar", loop.scalar},
            {"control", loop.control},
            {"nops", loop.nops},
            {"scratch", loop.scratch}}}};
}

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

std::optional<InnerLoop> inner_loop_of(const PipelineExecutable& executable) {
  const bool has_scratch = figures_of(executable.statistics).scratch != 0;
  for (const auto& [name, text] : executable.representations) {
    if (const auto loop = inner_loop(name, text, executable.subgroup_size, has_scratch))
      return loop;
  }
  return {};
}

nlohmann::json json_of(const PipelineExecutable& executable) {
  const PipelineFigures f = figures_of(executable.statistics);
  nlohmann::json statistics = nlohmann::json::object(), figures = nlohmann::json::object();
  for (const PipelineStatistic& s : executable.statistics) statistics[s.name] = s.value;
  const std::pair<const char*, double> all[] = {
      {"registers", f.registers},   {"spills", f.spills},
      {"fills", f.fills},           {"scratch", f.scratch},
      {"shared", f.shared},         {"occupancy", f.occupancy},
      {"code_bytes", f.code_bytes}, {"instructions", f.instructions}};
  for (const auto& [name, value] : all) {
    if (value >= 0) figures[name] = value;
  }
  nlohmann::json all_said = {{"name", executable.name},
                             {"subgroup_size", executable.subgroup_size},
                             {"figures", figures},
                             {"statistics", statistics}};
  if (const auto loop = inner_loop_of(executable)) all_said["inner_loop"] = loop_json(*loop);
  return all_said;
}

}  // namespace mulciber::apps
