// The conformance suite's promises: names, fixed inputs, and that each kind of fault gets its
// verdict.
#include <algorithm>
#include <array>
#include <cctype>
#include <map>
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
  // They take minutes on a software driver: no more per row than the 7,500 of 378 rows were.
  CHECK(must_pass * 378 < 7500 * static_cast<ptrdiff_t>(kernels().size()));
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

TEST_CASE("A case gives the same bits in other orders, and a difference names order and element") {
  Device& device = tests::shared_device();
  RunOptions options{.repeats = 1,
                     .orders = {{Order::kReverse}, {Order::kRandom, 1}, {Order::kRandom, 2}}};
  // The cases use shared memory, subgroup operations, and a grid along two axes.
  for (const char* name : {"mulciber.matmul.tiled_f32.m33_n37_k19", "mulciber.softmax.f32.r3_c129",
                           "mulciber.block.f32.feed_forward.r2_l7_d32_f64.relu"}) {
    const SuiteCase* c = find_case(name);
    INFO(name);
    REQUIRE(c);
    options.fault = Fault::kNone;
    const CaseResult good = c->run(device, options);
    INFO(good.detail);
    CHECK(good.status == Status::kPass);
    CHECK(good.orders == std::vector<std::string>{"reverse", "random 1", "random 2"});
    options.fault = Fault::kOrder;
    const CaseResult bad = c->run(device, options);
    CHECK(bad.status == Status::kFlaky);
    CHECK(bad.orders == std::vector<std::string>{"reverse"});
    using Catch::Matchers::ContainsSubstring;
    CHECK_THAT(bad.detail, ContainsSubstring("in reverse order of workgroups and subgroups "
                                             "element 0 of output 0 is "));
    CHECK_THAT(bad.detail, ContainsSubstring(c->op_case->name));
    if (!c->row.empty()) CHECK_THAT(bad.detail, ContainsSubstring(c->row));
  }
}

TEST_CASE("Of every row's short list a fifth runs in other orders, in reverse and at random") {
  std::map<std::string, std::array<size_t, 3>> rows;  // cases, in reverse, at random
  for (const SuiteCase& c : apps::suite_with_models()) {
    CHECK(orders_of(Shake::kNone, c.place, 5).empty());
    CHECK(orders_of(Shake::kAll, c.place, 5).size() == 3);
    if (!c.must_pass) continue;
    const std::vector<Order> some = orders_of(Shake::kSome, c.place, 5);
    auto& [cases, reverse, random] = rows[c.op + " " + c.row + (c.row.empty() ? c.types : "")];
    ++cases;
    if (some.empty()) continue;
    REQUIRE(some.size() == 1);
    reverse += some[0] == Order{Order::kReverse};
    random += some[0] == Order{Order::kRandom, 6};
  }
  for (const auto& [row, counts] : rows) {
    INFO(row << ": " << counts[0] << " cases");
    CHECK(counts[1] == (counts[0] + 9) / 10);
    CHECK(counts[2] == (counts[0] + 4) / 10);
  }
}
