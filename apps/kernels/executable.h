// A driver's statistics of a compiled pipeline, under names that all drivers share.
// bench/pipeline_layer.cpp uses this file too.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "apps/kernels/inner_loop.h"
#include "runtime/pipeline_executables.h"

namespace mulciber::apps {

/// Figures that most compilers give, under one name; negative where a driver does not give one.
struct PipelineFigures {
  double registers = -1;     // per invocation, of the widest file (VGPRs, GPRs)
  double spills = -1;        // stores of registers to memory, in the code
  double fills = -1;         // loads of spilled registers
  double scratch = -1;       // bytes of private memory per invocation
  double shared = -1;        // bytes of shared memory per workgroup
  double occupancy = -1;     // subgroups that run at once on one unit, in the driver's own unit
  double code_bytes = -1;    // size of the code
  double instructions = -1;  // number in the code
};
PipelineFigures figures_of(const std::vector<PipelineStatistic>& statistics);

/// The inner loop of the first text that is disassembly with a loop.
std::optional<InnerLoop> inner_loop_of(const PipelineExecutable& executable);

/// The driver's figures, its own statistics, and the inner loop, if there is one.
nlohmann::json json_of(const PipelineExecutable& executable);

}  // namespace mulciber::apps
