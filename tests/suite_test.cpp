// The conformance suite's own promises: names, fixed inputs, and that faults come out as what they
// are.
#include <algorithm>
#include <cctype>
#include <set>

#include "apps/conform/models.h"
#include "conformance/suite.h"
#include "runtime/op.h"
#include "tests/catch.h"
#include "tests/device.h"

using namespace mulciber;
using namespace mulciber::conformance;

TEST_CASE("Case names are unique, lower-case and dotted") {
  std::set<std::string> seen;
  const std::vector<SuiteCase>& cases = apps::suite_with_models();
  for (const SuiteCase& c : cases) {
    INFO(c.name);
    CHECK(seen.insert(c.name).second);
    CHECK(c.name.starts_with("mulciber." + c.op + "."));
    CHECK(std::all_of(c.name.begin(), c.name.end(), [](unsigned char letter) {
      return std::islower(letter) || std::isdigit(letter) || letter == '.' || letter == '_';
    }));
  }
  CHECK(cases.size() >= 5000);
  CHECK(cases.size() > suite().size());
  const auto must_pass =
      std::count_if(cases.begin(), cases.end(), [](const SuiteCase& c) { return c.must_pass; });
  CHECK(must_pass >= 800);
  CHECK(must_pass < 6500);  // minutes on a software driver
}

TEST_CASE("The inputs of a case depend on its name and the seed alone") {
  const KernelTypes types{DataType::kF32, DataType::kF32};
  const OpCase op_case = op_cases(Op::kMatmul).samples(types).at(3);
  auto values = [&](uint64_t seed) { return draw_inputs(op_case, seed).at(0).values; };
  CHECK(values(0) == values(0));
  CHECK(values(0) != values(1));
}

TEST_CASE("Injected faults come out with the right status") {
  Device& device = tests::shared_device();
  const SuiteCase* c = find_case("mulciber.matmul.tiled_f32.m33_n37_k19");
  REQUIRE(c);
  auto status = [&](Fault fault) { return c->run(device, {.repeats = 3, .fault = fault}).status; };
  CHECK(status(Fault::kNone) == Status::kPass);
  CHECK(status(Fault::kCorrupt) == Status::kFail);
  CHECK(status(Fault::kFlaky) == Status::kFlaky);
  CHECK(status(Fault::kWriteOutside) == Status::kFail);
  CHECK(status(Fault::kNone) == Status::kPass);
}
