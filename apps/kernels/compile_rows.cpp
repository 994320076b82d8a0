#include "apps/kernels/compile_rows.h"

#include <algorithm>

#include "conformance/op_case.h"
#include "runtime/recorder.h"

namespace mulciber::apps {
namespace {

using conformance::OpCase;

}  // namespace

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
