// Compiles rows for the shapes of their ops, and collects the driver's statistics of each.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "apps/cli/row_selection.h"
#include "runtime/pipeline.h"

namespace mulciber::apps {

/// One pipeline: a row for some types, with the specialization constants of some shapes.
struct CompiledRow {
  const Kernel* row;
  KernelTypes types;
  PipelineKey key;
  std::string shape_format;
  std::vector<std::vector<uint64_t>> shapes = {};
  std::vector<std::array<uint32_t, 3>> groups = {};    // workgroups of each shape's dispatch
  std::vector<std::vector<uint64_t>> chosen_for = {};  // the shapes for which it is selected
  CompiledPipeline compiled = {};
  std::string failure = {};  // why the pipeline could not be made
};

/// The pipelines of rows, not compiled yet.
std::vector<CompiledRow> pipelines_of(const std::vector<const Kernel*>& rows,
                                      const Capabilities& device, const RowSelection& selection);

}  // namespace mulciber::apps
