// Rows compiled for the shapes of their ops, and what the driver says of each.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "apps/row_selection.h"
#include "runtime/pipeline.h"

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

/// One pipeline: a row for some types, with the constants that some shapes give it.
struct CompiledRow {
  const Kernel* row;
  KernelTypes types;
  PipelineKey key;
  std::string shape_format;
  std::vector<std::vector<uint64_t>> shapes = {};
  std::vector<std::array<uint32_t, 3>> groups = {};    // of the dispatch for each shape
  std::vector<std::vector<uint64_t>> chosen_for = {};  // of the shapes, those it is selected for
  CompiledPipeline compiled = {};
  std::string failure = {};  // why there is none
};

/// The pipelines of rows, not compiled yet.
std::vector<CompiledRow> pipelines_of(const std::vector<const Kernel*>& rows,
                                      const Capabilities& device, const RowSelection& selection);

}  // namespace mulciber::apps
