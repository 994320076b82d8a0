// Rows chosen by measurement: what is stored, when a stored choice applies, and the measuring
// itself.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <new>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "conformance/op_case.h"
#include "conformance/tune.h"
#include "mulciber/error.h"
#include "runtime/choices.h"
#include "runtime/deny_list.h"
#include "runtime/op.h"
#include "tests/catch.h"
#include "tests/device.h"
#include "tests/support.h"

using namespace mulciber;
using namespace mulciber::conformance;

namespace {

constexpr KernelTypes kTypes = {DataType::kF32, DataType::kF16};

Problem product(uint64_t rows, uint64_t columns, uint64_t depth) {
  return problem_of(op_cases(Op::kMatmul).make(std::vector{rows, columns, depth}, kTypes),
                    Op::kMatmul);
}

/// A row that serves a problem and is not the first one that does.
const Kernel& second_row(const Capabilities& device, const Problem& problem) {
  const Kernel* first = select_kernel(device, problem).kernel;
  for (const Kernel& row : kernels()) {
    if (row.op == problem.op && &row != first && device.has(row.made_for) &&
        why_not(row, device, problem).empty())
      return row;
  }
  FAIL("no second row");
  return *first;
}

DeviceOptions options_in(const tests::TemporaryFolder& folder) {
  return options_from_environment({.cache_folder = folder.path().string()});
}

}  // namespace

TEST_CASE("Problems of a plain product or attention have extents, and share choices by them") {
  const Problem problem = product(3, 64, 32);
  CHECK(problem.extents == std::vector<uint64_t>{3, 64, 32});
  CHECK(choice_key(problem) == "matmul f32 f16 3,64,32");
  CHECK(choice_key(product(70, 64, 32)) == choice_key(product(128, 64, 32)));
  CHECK(choice_key(product(70, 64, 32)) != choice_key(product(64, 64, 32)));
  CHECK(choice_key(product(7, 64, 32)) != choice_key(product(8, 64, 32)));
  CHECK(choice_key(product(70, 64, 32)) != choice_key(product(70, 65, 32)));

  const OpCase attention =
      op_cases(Op::kAttention).make(std::vector<uint64_t>{1, 5, 40, 4, 32, 2}, kTypes);
  CHECK(choice_key(problem_of(attention, Op::kAttention)) == "attention f32 f16 1,5,64,4,32,2");
  CHECK(choice_key({Op::kSoftmax, kTypes, kAnyShape}).empty());
}

TEST_CASE("Selection takes a choice as long as its row serves") {
  Capabilities device = tests::shared_device().capabilities();
  const Problem problem = product(1, 256, 256);
  const Kernel* first = select_kernel(device, problem).kernel;
  const Kernel& second = second_row(device, problem);
  device.choices = {{choice_key(problem), second.id}};
  CHECK(select_kernel(device, problem).kernel == &second);

  SECTION("not for another size") {
    Capabilities without = device;
    without.choices.clear();
    for (const uint64_t rows : {2, 64}) {
      const Problem other = product(rows, 256, 256);
      CHECK(select_kernel(device, other).kernel == select_kernel(without, other).kernel);
    }
  }
  SECTION("not where it was denied") {
    device.denied_rows.emplace_back(second.id);
    device.denied_reasons.emplace_back("fails its self-test");
    CHECK(select_kernel(device, problem).kernel == first);
  }
  SECTION("not where others passed the self-test and it did not") {
    device.passed_rows = {first->id};
    CHECK(select_kernel(device, problem).kernel == first);
    device.passed_rows.emplace_back(second.id);
    CHECK(select_kernel(device, problem).kernel == &second);
  }
  SECTION("not a row that this build lacks") {
    device.choices.begin()->second = "matmul_of_another_version";
    CHECK(select_kernel(device, problem).kernel == first);
  }
  SECTION("not a row of another op or shape") {
    device.choices.begin()->second = "softmax_f32";
    CHECK(select_kernel(device, problem).kernel == first);
  }
}

TEST_CASE(
    "Choices are kept per driver, hold for the row as it was measured, and can be forgotten") {
  const tests::TemporaryFolder folder;
  const Capabilities& device = tests::shared_device().capabilities();
  const std::string cache = folder.path().string();
  const Kernel& row = kernels().front();
  Choices choices(device, cache);
  CHECK(choices.all().empty());
  CHECK(choices.keep(
      {{"a", {row.id, row_hash(row), {{row.id, 0.5}}}}, {"b", {row.id, row_hash(row) + 1, {}}}}));

  const Choices again(device, cache);
  REQUIRE(again.all().size() == 2);
  CHECK(again.all().at("a").milliseconds.front().second == 0.5);
  CHECK(again.valid() == std::map<std::string, std::string>{{"a", row.id}});

  Capabilities other = device;
  other.driver_info += " of tomorrow";
  CHECK(Choices(other, cache).all().empty());

  const std::string damage = GENERATE("", "{", "[]", R"({"format": 1})", "\xff\xfe");
  std::ofstream(again.file(), std::ios::binary) << damage;
  CHECK(Choices(device, cache).all().empty());
  choices.forget();
  CHECK(!std::filesystem::exists(choices.file()));
  CHECK(!Choices(device, "").keep({}));
}

TEST_CASE(
    "Tuning times every row that serves, keeps the quickest, and devices opened later take it") {
  const tests::TemporaryFolder folder;
  const DeviceOptions options = options_in(folder);
  AskedProblems asked;
  asked.note(product(2, 96, 64));
  asked.note(product(2, 96, 64));
  asked.note(product(40, 96, 64));
  asked.note({Op::kSoftmax, kTypes, kAnyShape});
  CHECK(asked.problems.size() == 2);

  const TuneReport report =
      tune(options, asked, {.seconds = 600, .seconds_per_row = 1e-3, .clear_gain = 1});
  CHECK(report.kept);
  CHECK(report.left == 0);
  REQUIRE(report.tuned.size() + report.alone == 4);  // also passes of 16 and 32 rows
  CHECK(report.tuned.front().times == 2);            // asked most often
  const std::unique_ptr<Device> device = Device::open(options);
  for (const Tuned& tuned : report.tuned) {
    INFO(choice_key(tuned.problem));
    REQUIRE(tuned.milliseconds.size() >= 2);
    double chosen = 0;
    for (const auto& [row, time] : tuned.milliseconds) {
      CHECK(time > 0);
      CHECK(why_not(*row, device->capabilities(), tuned.problem).empty());
      if (row == tuned.chosen) chosen = time;
    }
    for (const auto& [row, time] : tuned.milliseconds) CHECK(chosen <= time);
    CHECK(select_kernel(device->capabilities(), tuned.problem).kernel == tuned.chosen);
  }
  CHECK(tune(options, asked, {.seconds = 600}).known == report.tuned.size());
  CHECK(untuned(device->capabilities(), asked) == 0);

  SECTION("a device that ignores verdicts ignores choices") {
    DeviceOptions ignoring = options;
    ignoring.ignore_verdicts = true;
    CHECK(Device::open(ignoring)->capabilities().choices.empty());
  }
  SECTION("without time, everything is left") {
    const TuneReport none = tune(options, asked, {.seconds = 0, .again = true});
    CHECK(none.tuned.empty());
    CHECK(none.left == report.tuned.size());
  }
}

TEST_CASE("A row that the driver refuses is passed over, and the others are measured") {
  // Other drivers need not refuse an invalid module: SwiftShader crashes on it.
  const Capabilities& device = tests::shared_device().capabilities();
  if (device.driver_id != VK_DRIVER_ID_MESA_LLVMPIPE || std::getenv("MULCIBER_VALIDATE"))
    MULCIBER_SKIP("only llvmpipe, and no validation layer, is known to refuse a broken module");
  const tests::TemporaryFolder folder;
  const DeviceOptions options = options_in(folder);
  AskedProblems asked;
  asked.note(product(2, 96, 64));
  const Kernel* first = select_kernel(device, product(2, 96, 64)).kernel;
  REQUIRE(untuned(device, asked) == 1);

  // This is legal: only the reference is const, the table holds plain rows.
  auto& row = const_cast<Kernel&>(*first);
  const auto spirv = row.spirv;
  const uint32_t no_module[] = {0, 0, 0, 0, 0};
  row.spirv = no_module;
  TuneReport report = tune(options, asked, {.seconds = 600, .seconds_per_row = 1e-3});
  row.spirv = spirv;
  REQUIRE(report.tuned.size() == 1);
  const Tuned& tuned = report.tuned.front();
  REQUIRE(tuned.refused.size() == 1);
  CHECK(tuned.refused.front().first == first);
  CHECK_THAT(tuned.refused.front().second,
             Catch::Matchers::ContainsSubstring("could not make the pipeline"));
  CHECK(tuned.chosen != first);
  for (const auto& [timed, time] : tuned.milliseconds) CHECK(timed != first);
  CHECK(report.kept);
}

namespace {

/// The problems that models of these types ask for: every shape that `mulciber bench` runs, of
/// every op.
AskedProblems asked_of_every_op(const Capabilities& device) {
  AskedProblems asked;
  for (Op op : kAllOps) {
    std::set<std::pair<DataType, DataType>> seen;
    for (const Kernel& row : kernels()) {
      if (row.op != op) continue;
      for (const KernelTypes& types : concrete_types(row.types)) {
        if (!seen.insert({types.activation, types.weight}).second) continue;
        for (const std::vector<uint64_t>& shape : op_cases(op).bench_shapes()) {
          Capabilities watched = device;
          watched.asked = std::make_shared<AskedProblems>();
          try {
            nodes_of(watched, op_cases(op).make(shape, types), nullptr);
          } catch (const ShapeError&) {  // not whole blocks
          }
          for (const auto& [key, one] : watched.asked->problems) asked.note(one.problem);
        }
      }
    }
  }
  return asked;
}

/// A GPU with every feature that rows may need.
Capabilities every_gpu() {
  Capabilities device = tests::shared_device().capabilities();
  device.kind = DeviceKind::kDiscrete;
  device.features |= kGpu | kLargeTiles | kSubgroupMatrices;
  device.features &= ~kCpu;
  device.choices.clear();
  return device;
}

}  // namespace

TEST_CASE("The tuner times problems that every op can make and that a model has") {
  for (const Capabilities& device : {tests::shared_device().capabilities(), every_gpu()}) {
    const AskedProblems asked = asked_of_every_op(device);
    const std::vector<ToTime> all = problems_to_time(asked);
    std::set<Op> ops;
    for (const ToTime& one : all) {
      INFO(choice_key(one.problem) << (one.shorter ? ", shorter" : ""));
      const MeasuredOp* op = measured(one.problem.op);
      REQUIRE(op != nullptr);
      ops.insert(op->op);
      REQUIRE(one.problem.extents.size() == op->extents);
      const OpCase made = op_cases(op->op).make(one.problem.extents, one.problem.types);
      CHECK(problem_of(made, op->op).extents == one.problem.extents);
      // The problem differs from one that was asked at most in the extent that a prompt's length
      // changes.
      CHECK(std::ranges::any_of(asked.problems, [&](const auto& entry) {
        const Problem& whole = entry.second.problem;
        if (whole.op != op->op || !(whole.types == one.problem.types)) return false;
        for (size_t i = 0; i < op->extents; ++i) {
          const uint64_t extent = one.problem.extents[i];
          const bool may_differ = one.shorter && i == op->pass && extent < whole.extents[i];
          if (extent != whole.extents[i] && !may_differ) return false;
        }
        return true;
      }));
    }
    CHECK(ops.size() == std::size(kMeasuredOps));
    CHECK(untuned(device, asked) > 0);
    CHECK(std::ranges::none_of(
        all, [](const ToTime& one) { return one.shorter && one.problem.op == Op::kNormMatmul; }));
  }
}

TEST_CASE("The tuner comes to its end over the problems of every op") {
  const tests::TemporaryFolder folder;
  const DeviceOptions options = options_in(folder);
  const AskedProblems asked = asked_of_every_op(Device::open(options)->capabilities());
  size_t timed = 0;
  const TuneReport report =
      tune(options, asked, {.seconds = 600, .timer = [&](Device&, const OpCase&, const Kernel&) {
                              return static_cast<double>(++timed);
                            }});
  CHECK(timed > 0);
  CHECK(report.left == 0);
  INFO((report.failed.empty() ? "" : describe(report.failed)));
  CHECK(report.failed.empty());
  CHECK(report.tuned.size() + report.alone + report.known == problems_to_time(asked).size());
}

TEST_CASE("What fails while it is timed is told, and the row that stands first serves") {
  const tests::TemporaryFolder folder;
  const DeviceOptions options = options_in(folder);
  const Problem problem = product(2, 96, 64);
  const Capabilities& device = tests::shared_device().capabilities();
  const Kernel* first = select_kernel(device, problem).kernel;
  const Kernel* second = &second_row(device, problem);
  AskedProblems asked;
  asked.note(problem);
  TuneOptions tuning{.seconds = 600};
  const auto throws_on = [&](const Kernel* broken, const std::function<void()>& fail) {
    tuning.timer = [=](Device&, const OpCase&, const Kernel& row) {
      if (broken == nullptr || &row == broken) fail();
      return &row == second ? 1.0 : 2.0;
    };
    return tune(options, asked, tuning);
  };
  const auto lost = [] { throw DeviceError(DeviceError::Kind::kLost, "GPU", "was lost"); };

  SECTION("a problem that its op does not make") {
    // Products with a norm once asked in this form, with their single row.
    Problem wrong{Op::kNormMatmul, kTypes, kAnyShape, {1, 96, 64}};
    asked.note(wrong);
    const TuneReport report = throws_on(first, [] {});
    REQUIRE(report.failed.size() == 1);
    CHECK(report.failed[0].row == nullptr);
    CHECK_THAT(describe(report.failed),
               Catch::Matchers::ContainsSubstring("norm_matmul f32 f16 1,96,64") &&
                   Catch::Matchers::ContainsSubstring("two positive numbers"));
    CHECK(report.tuned.size() == 1);
    CHECK(report.kept);
  }
  SECTION("a row that cannot be timed is passed over") {
    for (const auto& fail : std::vector<std::function<void()>>{
             [] { throw KernelError("row", "refused", ""); },
             [] { throw ShapeError("op", "refused", ""); },
             [] { throw DeviceError(DeviceError::Kind::kFailed, "GPU", "refused"); },
             [] { throw std::runtime_error("refused"); }}) {
      tuning.again = true;
      const TuneReport report = throws_on(first, fail);
      REQUIRE(report.failed.size() == 1);
      CHECK(report.failed[0].row == first);
      CHECK_THAT(describe(report.failed), Catch::Matchers::ContainsSubstring("refused") &&
                                              Catch::Matchers::ContainsSubstring(first->id));
      REQUIRE(report.tuned.size() == 1);
      CHECK(report.tuned[0].chosen == second);
    }
  }
  SECTION("where no row can be timed, nothing is chosen") {
    const TuneReport report = throws_on(nullptr, [] { throw KernelError("row", "refused", ""); });
    CHECK(report.tuned.empty());
    CHECK(report.left == 1);
    CHECK(report.failed.size() >= 2);
    CHECK(select_kernel(Device::open(options)->capabilities(), problem).kernel == first);
  }
  SECTION("without memory it is left for the next start") {
    const auto fail = [] { throw DeviceError(DeviceError::Kind::kOutOfMemory, "GPU", "is full"); };
    const TuneReport report = throws_on(second, fail);
    CHECK(report.tuned.empty());
    CHECK(report.left == 1);
    CHECK(report.failed.size() == 1);
    CHECK(throws_on(first, [] { throw std::bad_alloc(); }).left == 1);
  }
  SECTION("a loss of the device ends the measuring, and its row is not chosen") {
    asked.note(product(3, 96, 64));
    const TuneReport report = throws_on(first, lost);
    REQUIRE(report.tuned.size() == 1);
    CHECK(report.left == 1);
    CHECK(report.tuned[0].chosen != first);
    CHECK(report.tuned[0].milliseconds.empty());
    CHECK(report.failed.size() == 1);
    CHECK(report.kept);
    const auto reopened = Device::open(options);
    CHECK(select_kernel(reopened->capabilities(), report.tuned[0].problem).kernel ==
          report.tuned[0].chosen);
    CHECK(untuned(reopened->capabilities(), asked) == 1);
  }
  SECTION("a loss behind rows that were timed leaves these") {
    const TuneReport report = throws_on(second, lost);
    REQUIRE(report.tuned.size() == 1);
    CHECK(report.tuned[0].chosen != second);
  }
}

TEST_CASE("Programs note what they ask of selection, where somebody wants to know") {
  Capabilities device = tests::shared_device().capabilities();
  const OpCase op_case = op_cases(Op::kMatmul).make(std::vector<uint64_t>{1, 96, 64}, kTypes);
  CHECK_NOTHROW(nodes_of(device, op_case, nullptr));
  device.asked = std::make_shared<AskedProblems>();
  nodes_of(device, op_case, nullptr);
  REQUIRE(device.asked->problems.size() == 1);
  CHECK(device.asked->problems.begin()->first == "matmul f32 f16 1,96,64");
}
