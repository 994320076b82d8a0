// What a driver says of a compiled pipeline, under names that all drivers share. Part of
// bench/pipeline_layer.cpp as well.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "apps/kernels/inner_loop.h"
#include "runtime/pipeline_executables.h"

namespace mulciber::apps {

/// Figures that most compilers have, under one name; negative where a driver does not say.
struct PipelineFigures {
  double registers = -1;     // of one invocation, of the widest file (VGPRs, GPRs)
  double spills = -1;        // stores of registers to memory, in the code
  double fills = -1;         // loads of them
  double scratch = -1;       // bytes of memory for what no register holds, each invocation
  double shared = -1;        // bytes of shared memory, each workgroup
  double occupancy = -1;     // subgroups at a time on one unit, in the driver's own unit
  double code_bytes = -1;    // size of the code
  double instructions = -1;  // in the code
};
PipelineFigures figures_of(const std::vector<PipelineStatistic>& statistics);

/// Of the first text that is disassembly with a loop.
std::optional<InnerLoop> inner_loop_of(const PipelineExecutable& executable);

/// The figures that the driver gives, its own statistics, and the inner loop where there is one.
nlohmann::json json_of(const PipelineExecutable& executable);

}  // namespace mulciber::apps
