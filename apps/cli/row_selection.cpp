#include "apps/cli/row_selection.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <optional>

#include "apps/cli/command.h"
#include "apps/cli/standard_error.h"

namespace mulciber::apps {
namespace {

bool matches(const std::string& glob, const char* name) {
  return fnmatch(glob.c_str(), name, 0) == 0;
}

/// Whether a weight type is measured by default: of block types the most frequent ones, and one
/// whose values stand in a table.
bool usual(DataType weight) {
  return !is_block_type(weight) || weight == DataType::kQ4_0 || weight == DataType::kQ8_0 ||
         weight == DataType::kQ4_K || weight == DataType::kQ6_K || weight == DataType::kIQ3_S;
}

constexpr uint64_t kMostElements = uint64_t{1} << 31;  // of an input, and in an extent

/// The extents in a text. No value where it is anything but numbers from 1 to kMostElements between
/// commas.
std::optional<std::vector<uint64_t>> numbers_of(const std::string& text) {
  std::vector<uint64_t> numbers;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    uint64_t number = 0;
    const auto [behind, error] = std::from_chars(at, end, number);
    if (error != std::errc() || number == 0 || number > kMostElements) return std::nullopt;
    numbers.push_back(number);
    if (behind == end) return numbers;
    if (*behind != ',') return std::nullopt;
    at = behind + 1;
  }
}

std::string no_shape(const std::string& text) {
  return fmt::format(
      "\"{}\" is no shape such as 64,2048,768: numbers from 1, tensors of at most 2^31 elements",
      text);
}

bool is_too_large(const conformance::CaseInput& input) {
  double elements = 1;  // the product of four extents may exceed 64 bits
  for (size_t i = 0; i < input.shape.rank(); ++i) elements *= static_cast<double>(input.shape[i]);
  return elements > static_cast<double>(kMostElements);
}

/// The first of the shapes whose inputs have more elements than a tensor may have; nullptr: none.
const std::string* too_large_shape(const RowSelection& selection, const Kernel& row) {
  for (const std::string& shape : selection.shapes) {
    for (const KernelTypes& types : selected_types(selection, row)) {
      try {
        const conformance::OpCase made =
            conformance::op_cases(row.op).make(*numbers_of(shape), types);
        if (std::ranges::any_of(made.inputs, is_too_large)) return &shape;
      } catch (const Error&) {
        continue;  // for_each_case() tells
      }
    }
  }
  return nullptr;
}

}  // namespace

std::vector<std::vector<uint64_t>> shapes_of(const RowSelection& selection) {
  std::vector<std::vector<uint64_t>> shapes;
  for (const std::string& shape : selection.shapes) shapes.push_back(*numbers_of(shape));
  return shapes;
}

void add_row_options(Command& command, RowSelection& selection, const std::string& purpose,
                     const std::string& weight_help) {
  command
      .add_option("--kernel", selection.kernel,
                  fmt::format("rows or ops to {}: a glob over row ids and op names", purpose))
      .type_name("GLOB");
  command.add_option("--weight", selection.weight, weight_help).type_name("GLOB");
  command
      .add_option("--shape", selection.shapes,
                  "a shape instead of the op's own, as in 64,2048,768; may come several times")
      .one_value_each()
      .type_name("N,N,...")
      .check([](const std::string& shape) { return numbers_of(shape) ? "" : no_shape(shape); });
}

std::vector<const Kernel*> selected_rows(const RowSelection& selection,
                                         const Capabilities& device) {
  std::vector<const Kernel*> rows;
  for (const Kernel& row : kernels()) {
    if (!matches(selection.kernel, row.id) && !matches(selection.kernel, name_of(row.op))) continue;
    if (why_not_runnable(row, device).empty()) rows.push_back(&row);
  }
  if (rows.empty()) {
    fmt::print(
        stderr,
        "mulciber: no kernel row that runs here matches \"{}\"; `mulciber devices -v` lists them\n",
        selection.kernel);
  } else if (!selection.shapes.empty() &&
             !std::ranges::all_of(rows, [&](auto* row) { return row->op == rows[0]->op; })) {
    tell("mulciber: --shape needs rows of one op; \"{}\" matches several\n", selection.kernel);
    rows.clear();
  } else if (std::ranges::all_of(
                 rows, [&](auto* row) { return selected_types(selection, *row).empty(); })) {
    tell("mulciber: no row that matches \"{}\" has weights of a type that matches \"{}\"\n",
         selection.kernel, selection.weight);
    rows.clear();
  } else if (const std::string* shape = too_large_shape(selection, *rows[0])) {
    tell("mulciber: {}\n", no_shape(*shape));
    rows.clear();
  }
  return rows;
}

std::vector<KernelTypes> selected_types(const RowSelection& selection, const Kernel& row) {
  std::vector<KernelTypes> all = concrete_types(row.types);
  std::erase_if(all, [&](const KernelTypes& types) {
    return selection.weight.empty() ? !usual(types.weight)
                                    : !matches(selection.weight, name_of(types.weight));
  });
  return all;
}

void for_each_case(const RowSelection& selection, const Kernel& row,
                   const std::function<void(const KernelTypes&, const std::vector<uint64_t>& shape,
                                            const conformance::OpCase&)>& visit) {
  const conformance::OpCases& cases = conformance::op_cases(row.op);
  std::vector<std::vector<uint64_t>> shapes = shapes_of(selection);
  if (shapes.empty()) shapes = cases.bench_shapes();
  const bool several_types = concrete_types(row.types).size() > 1;
  for (const KernelTypes& types : selected_types(selection, row)) {
    for (const std::vector<uint64_t>& shape : shapes) {
      if (interrupted()) return;
      try {
        visit(types, shape, cases.make(shape, types));
      } catch (const KernelError&) {
        continue;  // the row cannot serve that shape
      } catch (const ShapeError&) {
        if (!several_types) throw;
        continue;  // the shape has partial blocks of the type
      }
    }
  }
}

}  // namespace mulciber::apps
