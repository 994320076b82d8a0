// Selects rows of kernels.def, and their types and shapes, for `bench` and `kernels`.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "apps/cli/options.h"
#include "conformance/op_case.h"
#include "runtime/kernel.h"

namespace mulciber::apps {

struct RowSelection {
  std::string kernel = "*";         // glob over row ids and op names
  std::string weight = "*";         // glob over weight types; "": of block types the usual ones
  std::vector<std::string> shapes;  // "64,2048,768"; empty: those of OpCases::bench_shapes()
};

/// Adds --kernel, --weight and --shape. purpose: the verb for the rows in help texts, "measure";
/// weight_help: the help text of --weight.
void add_row_options(Command& command, RowSelection& selection, const std::string& purpose,
                     const std::string& weight_help);

/// The shapes as numbers.
std::vector<std::vector<uint64_t>> shapes_of(const RowSelection& selection);

/// The rows that match and run on the device. Empty, after a line on standard error, where no row
/// does or where a shape is given for rows of several ops.
std::vector<const Kernel*> selected_rows(const RowSelection& selection, const Capabilities& device);

/// The types of a row that match.
std::vector<KernelTypes> selected_types(const RowSelection& selection, const Kernel& row);

/// Visits a plain case for each of the types and shapes. Cases that the row cannot serve are
/// skipped, also where `visit` finds that out (KernelError, ShapeError); ends early when
/// interrupted.
void for_each_case(const RowSelection& selection, const Kernel& row,
                   const std::function<void(const KernelTypes&, const std::vector<uint64_t>& shape,
                                            const conformance::OpCase&)>& visit);

}  // namespace mulciber::apps
