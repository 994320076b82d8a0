// Every op of shaders/ops.def is complete: rows of which one runs everywhere, cases with a
// double-precision reference, a case of the self-test, and a mutant that the suite must catch.
#include <algorithm>
#include <cctype>
#include <fstream>
#include <map>
#include <set>
#include <string>

#include "conformance/self_test.h"
#include "conformance/suite.h"
#include "runtime/op.h"
#include "tests/catch.h"
#include "tests/support.h"

using namespace mulciber;
using namespace mulciber::conformance;

namespace {

std::vector<const Kernel*> rows_of(Op op) {
  std::vector<const Kernel*> rows;
  for (const Kernel& row : kernels()) {
    if (row.op == op) rows.push_back(&row);
  }
  return rows;
}

/// The number of mutants of tests/mutants/mutants.txt that each op has, those left out of this
/// build included.
std::map<Op, size_t> mutants_by_op() {
  std::map<Op, size_t> count;
  std::ifstream file(tests::source_dir() / "tests/mutants/mutants.txt");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("row ")) continue;
    if (const Kernel* row = find_kernel(line.substr(4))) ++count[row->op];
  }
  return count;
}

}  // namespace

TEST_CASE("Every op has a name of its own and a summary") {
  std::set<std::string> names;
  for (Op op : kAllOps) {
    const std::string name = name_of(op);
    INFO(name);
    CHECK(names.insert(name).second);
    CHECK(std::ranges::all_of(name, [](unsigned char c) { return std::islower(c) || c == '_'; }));
    CHECK(std::string(summary_of(op)).size() > 10);
  }
  CHECK(name_of(Op::kMatmul) == std::string("matmul"));
  CHECK(name_of(Op::kExpertMatmul) == std::string("expert_matmul"));
}

TEST_CASE("Every op has rows, and one of them that asks nothing of device and shape") {
  for (Op op : kAllOps) {
    INFO(name_of(op));
    const std::vector<const Kernel*> rows = rows_of(op);
    CHECK_FALSE(rows.empty());
    CHECK(std::ranges::any_of(rows, [](const Kernel* row) {
      return row->needs == kNothing && row->shape == kAnyShape && row->made_for == kAnyDevice;
    }));
  }
}

TEST_CASE("Every row has cases in the suite and its short list, each with program and reference") {
  std::map<std::string, size_t> cases_by_row, short_list;
  for (const SuiteCase& c : suite()) {
    ++cases_by_row[c.row];
    short_list[c.row] += c.must_pass;
  }
  for (Op op : kAllOps) {
    INFO(name_of(op));
    const OpCases& cases = op_cases(op);
    CHECK_FALSE(cases.shape_format().empty());
    CHECK_FALSE(cases.bench_shapes().empty());
    for (const Kernel* row : rows_of(op)) {
      INFO(row->id);
      CHECK(cases_by_row[row->id] > 0);
      CHECK(short_list[row->id] > 0);
      size_t without_program = 0, without_reference = 0;
      for (const OpCase& c : cases.samples(row->types)) {
        without_program += !c.build;
        without_reference += !c.reference;
      }
      CHECK(without_program == 0);
      CHECK(without_reference == 0);
      // Throws KernelError where the cases build another op.
      CHECK(problem_of(self_test_case(*row), op).op == op);
    }
  }
}

TEST_CASE("Every op has a mutant") {
  std::map<Op, size_t> mutants = mutants_by_op();
  for (Op op : kAllOps) {
    INFO(name_of(op));
    CHECK(mutants[op] > 0);
  }
}
