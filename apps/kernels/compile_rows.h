// Rows compiled for the shapes of their ops, and what the driver says of each.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "apps/cli/row_selection.h"
#include "runtime/pipeline.h"

namespace mulciber::apps {

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
