#include "conformance/suite.h"

#include "conformance/blocks/block_cases.h"
#include "conformance/self_test.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

namespace mulciber::conformance {
namespace {

// The row's part of a case's name: its id without its op.
std::string row_part(const Kernel& row) {
  std::string id = row.id, op = name_of(row.op);
  if (id == op) return "baseline";
  return id.starts_with(op + "_") ? id.substr(op.size() + 1) : id;
}

std::string types_of(KernelTypes types) {
  return types.activation == types.weight
             ? name_of(types.activation)
             : fmt::format("{} {}", name_of(types.activation), name_of(types.weight));
}

// Rows that no device selects, and those for matrices that few devices have, are on the short list
// only with the self-test's case (add_rows); their other cases are for the whole suite, and for the
// project's own tests. Rows for matrices of other sizes differ from those for 16x16x16 only in the
// layout of fragments, which their exact cases test; the same holds for rows with f16 arithmetic.
// Each part of a split-K product is like a product without a split.
bool on_short_list(const Kernel& row, const OpCase& op_case) {
  if (row.made_for == kPlainMatrices || op_case.needs_constant != 0 || op_case.long_list_alone)
    return false;
  if (row.needs & (kWorkgroupMatrices | kBF16Operands)) return false;
  const bool exact_cases =
      (row.needs & (kHalfMatrices | kIntegerMatrices) & ~kMatrix16x16x16F16) != 0 ||
      (row.made_for & kFastHalf) != 0;
  return op_case.exact || (op_case.must_pass && !exact_cases);
}

void add_rows(std::vector<SuiteCase>& cases) {
  struct Sample {
    std::shared_ptr<const OpCase> op_case;
    ShapeFacts facts;
  };
  std::map<std::pair<Op, std::string>, std::vector<Sample>> samples;
  for (const Kernel& row : kernels()) {
    auto [entry, added] = samples.try_emplace({row.op, types_of(row.types)});
    if (added) {
      for (OpCase& op_case : op_cases(row.op).samples(row.types)) {
        const ShapeFacts facts = problem_of(op_case, row.op).facts;
        entry->second.push_back({std::make_shared<OpCase>(std::move(op_case)), facts});
      }
    }
    std::vector<SuiteCase> of_row;
    for (const auto& [op_case, facts] : entry->second) {
      if ((row.shape & ~facts) || !concerns(*op_case, row)) continue;
      SuiteCase c;
      c.name = fmt::format("mulciber.{}.{}.{}", name_of(row.op), row_part(row), op_case->name);
      c.op = name_of(row.op);
      c.row = row.id;
      c.types = types_of(op_case->types);
      c.must_pass = on_short_list(row, *op_case);
      c.op_case = op_case;
      c.run = [&row, op_case = op_case](Device& device, const RunOptions& options) {
        return run_case(device, *op_case, &row, options);
      };
      of_row.push_back(std::move(c));
    }
    if (std::ranges::none_of(of_row, &SuiteCase::must_pass)) {
      const std::string name = self_test_case(row).name;
      for (SuiteCase& c : of_row) c.must_pass = c.op_case->name == name;
    }
    size_t places[2] = {};
    for (SuiteCase& c : of_row) {
      c.place = places[c.must_pass]++;
      cases.push_back(std::move(c));
    }
  }
}

void add_blocks(std::vector<SuiteCase>& cases) {
  for (const KernelTypes types :
       {KernelTypes{DataType::kF32, DataType::kF32}, {DataType::kF32, DataType::kF16}}) {
    std::string part = types_of(types);
    std::replace(part.begin(), part.end(), ' ', '_');
    size_t places[2] = {};
    for (OpCase& op_case : block_cases(types)) {
      SuiteCase c;
      c.name = fmt::format("mulciber.block.{}.{}", part, op_case.name);
      c.op = "block";
      c.types = types_of(types);
      c.must_pass = op_case.must_pass;
      c.place = places[c.must_pass]++;
      c.op_case = std::make_shared<OpCase>(std::move(op_case));
      c.run = [op_case = c.op_case](Device& device, const RunOptions& options) {
        return run_case(device, *op_case, nullptr, options);
      };
      cases.push_back(std::move(c));
    }
  }
}

}  // namespace

const std::vector<SuiteCase>& suite() {
  static const std::vector<SuiteCase> cases = [] {
    std::vector<SuiteCase> all;
    add_rows(all);
    add_blocks(all);
    return all;
  }();
  return cases;
}

const SuiteCase* find_case(std::string_view name) {
  static const auto index = [] {
    std::unordered_map<std::string_view, const SuiteCase*> by_name;
    for (const SuiteCase& c : suite()) by_name.emplace(c.name, &c);
    return by_name;
  }();
  const auto found = index.find(name);
  return found == index.end() ? nullptr : found->second;
}

}  // namespace mulciber::conformance
