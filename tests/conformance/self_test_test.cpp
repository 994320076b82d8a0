// The driver self-test, and the deny list that it keeps.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <list>
#include <nlohmann/json.hpp>

#include "conformance/self_test.h"
#include "mulciber/error.h"
#include "runtime/deny_list.h"
#include "runtime/op.h"
#include "runtime/spirv_reflection.h"
#include "tests/catch.h"
#include "tests/device.h"
#include "tests/mutants/mutants.h"
#include "tests/support.h"

using namespace mulciber;
using namespace mulciber::conformance;
using Catch::Matchers::ContainsSubstring;
using Verdict = DenyList::Verdict;
namespace fs = std::filesystem;

namespace {

const Kernel& row_of(const char* id) {
  const Kernel* row = find_kernel(id);
  REQUIRE(row);
  return *row;
}

std::string self_test_text(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

size_t files_in(const fs::path& folder) {
  return static_cast<size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

// The self-test entry of `mulciber devices --json` for the best device, from a process of its own.
nlohmann::json self_test_in_new_process(const fs::path& cache) {
  const std::string command = "MULCIBER_CACHE='" + cache.string() + "' '" +
                              tests::command_file().string() + "' devices --json";
  std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  REQUIRE(pipe);
  std::string text;
  for (int c = std::fgetc(pipe.get()); c != EOF; c = std::fgetc(pipe.get()))
    text.push_back(static_cast<char>(c));
  return nlohmann::json::parse(text).at(0).at("self_test");
}

}  // namespace

TEST_CASE("Every row has a case of its self-test, exact where the op only adds and multiplies") {
  for (const Kernel& row : kernels()) {
    INFO(row.id);
    const OpCase test = self_test_case(row);
    CHECK((row.shape & ~problem_of(test, row.op).facts) == 0);
    CHECK(test.exact == op_cases(row.op).exact(row.types));
  }
}

TEST_CASE("The self-test of a row fills its tile: no part of it has nothing to compute") {
  size_t tiled = 0;
  for (const Kernel& row : kernels()) {
    const OpCase test = self_test_case(row);
    INFO(row.id << ", " << test.name);
    CHECK(fills_tile(row, test));
    const uint32_t height = std::max(row.find(RowConstant::TILE_M).value_or(0),
                                     row.find(RowConstant::TILE_Q).value_or(0));
    if (height < 16) continue;
    ++tiled;
    CHECK(std::max(test.tiled_rows, test.tiled_queries) > height / 2);
  }
  CHECK(tiled > 100);
}

TEST_CASE("A row that computes wrongly is denied, with the reason, and the next one serves") {
  if (tests::mutants().empty()) MULCIBER_SKIP("there is no glslang to compile a mutant with");
  tests::TemporaryFolder folder;
  const DeviceOptions device_options =
      options_from_environment({.cache_folder = folder.path().string()});
  const Kernel& row = row_of("append_cache_vector_f32");
  const tests::Mutant* mutant = nullptr;
  for (const tests::Mutant& candidate : tests::mutants()) {
    // The first mutant changes what every case does; others change pages.
    if (!mutant && candidate.row == std::string(row.id)) mutant = &candidate;
  }
  REQUIRE(mutant);
  Kernel broken = row;
  broken.spirv = mutant->spirv;
  broken.reflection = reflect_spirv(mutant->name, mutant->spirv);

  const Problem problem{row.op, row.types, row.shape};
  const Capabilities before = Device::enumerate(device_options)[0];
  CHECK(select_kernel(before, problem).kernel == &row);
  CHECK(std::ranges::count(untested_rows(before), &row) == 1);

  SelfTestOptions options;
  bool begun = false, done = false;
  options.seconds = 600;
  options.threads = 1;  // so that nothing else is tested while the row is
  options.stand_in = [&](const Kernel& asked) -> const Kernel& {
    return &asked == &row ? broken : asked;
  };
  options.progress = [&](const Kernel& asked, size_t, size_t) {
    done = begun;
    begun = begun || &asked == &row;
  };
  options.cancelled = [&] { return begun; };
  const SelfTestReport report = conformance::self_test(device_options, options);
  CHECK(report.kept);
  CHECK_FALSE(done);
  INFO(report.passed << " passed, " << report.untested << " left; " << self_test_case(row).name);
  REQUIRE(report.failures.size() == 1);
  CHECK(report.failures[0].row == row.id);
  CHECK_THAT(report.failures[0].reason, ContainsSubstring("expected"));

  const auto device = Device::open(device_options);
  const Capabilities& after = device->capabilities();
  const Selection selection = select_kernel(after, problem);
  REQUIRE(selection.kernel);
  CHECK(selection.kernel->id == std::string("append_cache_f32"));
  REQUIRE_FALSE(selection.passed_over.empty());
  CHECK_THAT(selection.passed_over[0].reason, ContainsSubstring(report.failures[0].reason));
  CHECK(after.passed_rows.size() == report.passed);
  CHECK(std::ranges::count(untested_rows(after), &row) == 0);
  // Conformance runs denied rows.
  CHECK(Device::enumerate(options_from_environment(
            {.cache_folder = device_options.cache_folder, .ignore_verdicts = true}))[0]
            .denied_rows == before.denied_rows);

  const nlohmann::json said = self_test_in_new_process(folder.path());
  bool found = false;
  for (const nlohmann::json& denied : said.at("denied")) {
    found =
        found || (denied.at("row") == row.id && denied.at("reason") == report.failures[0].reason);
  }
  CHECK(found);
  CHECK(said.at("passed").size() == report.passed);

  // When tested again, the row passes, and serves again.
  options = {};
  options.seconds = 600;
  options.threads = 1;  // so that nothing else is tested while the row is
  options.again = true;
  begun = false;
  options.progress = [&](const Kernel& asked, size_t, size_t) { begun = begun || &asked == &row; };
  options.cancelled = [&] { return begun; };
  CHECK(conformance::self_test(device_options, options).failures.empty());
  CHECK(select_kernel(Device::enumerate(device_options)[0], problem).kernel == &row);
}

TEST_CASE("Where the last row is denied, the op refuses with the reason") {
  tests::TemporaryFolder folder;
  const DeviceOptions device_options =
      options_from_environment({.cache_folder = folder.path().string()});
  const Kernel &vector = row_of("append_cache_vector_f32"), &last = row_of("append_cache_f32");
  {
    DenyList list(Device::enumerate(device_options)[0], device_options.cache_folder);
    REQUIRE(list.begin_testing(false));
    list.fail(vector, "first reason");
    list.fail(last, "second reason");
  }
  const auto device = Device::open(device_options);
  CHECK_THROWS_AS(require_kernel(device->capabilities(), {last.op, last.types, vector.shape}),
                  KernelError);
  CHECK_THROWS_WITH(require_kernel(device->capabilities(), {last.op, last.types, vector.shape}),
                    ContainsSubstring("first reason") && ContainsSubstring("second reason"));
}

TEST_CASE("A verdict holds for one driver version and one build of the row") {
  tests::TemporaryFolder folder;
  const std::string cache = folder.path().string();
  const Capabilities device =
      Device::enumerate(options_from_environment({.cache_folder = cache}))[0];
  const Kernel& row = row_of("elementwise_f32");
  {
    DenyList list(device, cache);
    CHECK(list.verdict(row) == Verdict::kUntested);
    REQUIRE(list.begin_testing(false));
    list.begin(row);
    list.pass(row);
  }
  DenyList list(device, cache);
  CHECK(list.verdict(row) == Verdict::kPassed);
  Kernel other = row;
  const std::vector<uint32_t> words(row.spirv.begin(), row.spirv.end() - 1);
  other.spirv = words;
  CHECK(list.verdict(other) == Verdict::kUntested);
  other = row;
  other.constants[0].value *= 2;
  CHECK(list.verdict(other) == Verdict::kUntested);

  Capabilities newer = device;
  ++newer.packed_driver_version;
  CHECK(DenyList(newer, cache).verdict(row) == Verdict::kUntested);
  Capabilities wider = device;
  wider.subgroup_size *= 2;
  CHECK(DenyList(wider, cache).verdict(row) == Verdict::kUntested);

  SECTION("a truncated or foreign file counts as none") {
    const std::string whole = self_test_text(list.file());
    REQUIRE(whole.size() > 100);
    for (const std::string& text :
         {whole.substr(0, whole.size() / 2), std::string(), std::string("[1, 2]"),
          std::string(R"({"format": 1, "driver": 3, "rows": {}})"), std::string(1000, '\xff')}) {
      std::ofstream(list.file(), std::ios::binary) << text;
      CHECK(DenyList(device, cache).verdict(row) == Verdict::kUntested);
    }
    DenyList again(device, cache);
    REQUIRE(again.begin_testing(false));
    again.pass(row);
    CHECK(DenyList(device, cache).verdict(row) == Verdict::kPassed);
    again.end_testing();
    // The verdicts and the lock remain: no half-written file is left.
    CHECK(files_in(folder.path()) == 2);
  }
}

TEST_CASE("A row in which two processes died is denied, one is tested again") {
  tests::TemporaryFolder folder;
  const std::string cache = folder.path().string();
  const Capabilities device =
      Device::enumerate(options_from_environment({.cache_folder = cache}))[0];
  const Kernel &row = row_of("elementwise_f32"), &other = row_of("elementwise_f16");
  for (int death = 0; death < 2; ++death) {
    DenyList list(device, cache);
    REQUIRE(list.begin_testing(false));
    CHECK(list.verdict(row) == Verdict::kUntested);
    CHECK(list.suspect(row) == (death == 1));
    CHECK_FALSE(list.suspect(other));
    list.begin(other);
    list.abandon(other);
    list.begin(row);
  }
  DenyList list(device, cache);
  REQUIRE(list.begin_testing(false));
  CHECK(list.verdict(row) == Verdict::kFailed);
  CHECK_THAT(list.reason(row), ContainsSubstring("died"));
  CHECK(list.verdict(other) == Verdict::kUntested);
}

TEST_CASE("One process tests at a time, and none where nothing can be kept") {
  tests::TemporaryFolder folder;
  const std::string cache = folder.path().string();
  const Capabilities device =
      Device::enumerate(options_from_environment({.cache_folder = cache}))[0];
  DenyList first(device, cache), second(device, cache);
  CHECK(first.begin_testing(false));
  CHECK_FALSE(second.begin_testing(false));
  CHECK_FALSE(conformance::self_test(options_from_environment({.cache_folder = cache})).kept);
  first.end_testing();
  CHECK(second.begin_testing(false));

  // The first path is not a folder, and the second folder is not writable.
  for (const char* place : {"/dev/null/none", "/proc/self"}) {
    INFO(place);
    CHECK_FALSE(DenyList(device, place).begin_testing(false));
    const SelfTestReport report =
        conformance::self_test(options_from_environment({.cache_folder = place}));
    CHECK_FALSE(report.kept);
    CHECK(report.passed + report.failures.size() == 0);
    CHECK(Device::open(options_from_environment({.cache_folder = place})));
  }
}

TEST_CASE("Threads share the rows, after one that a process died in") {
  tests::TemporaryFolder folder;
  const DeviceOptions device_options =
      options_from_environment({.cache_folder = folder.path().string()});
  const Kernel& suspect = row_of("embedding_f32");
  {
    DenyList list(Device::enumerate(device_options)[0], device_options.cache_folder);
    REQUIRE(list.begin_testing(false));
    list.begin(suspect);
  }
  std::vector<const Kernel*> order;
  SelfTestOptions options;
  options.seconds = 600;
  options.threads = 3;
  options.progress = [&](const Kernel& row, size_t done, size_t) {
    CHECK(order.size() == done);
    order.push_back(&row);
  };
  options.cancelled = [&] { return order.size() >= 9; };
  const SelfTestReport report = conformance::self_test(device_options, options);
  CHECK(report.failures.empty());
  CHECK(report.passed == 9);
  REQUIRE(order.size() == 9);
  CHECK(order[0] == &suspect);
  std::ranges::sort(order);
  CHECK(std::ranges::adjacent_find(order) == order.end());
  CHECK(Device::enumerate(device_options)[0].passed_rows.size() == 9);
}
