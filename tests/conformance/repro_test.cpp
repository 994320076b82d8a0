// The contents of repro folders. tests/cli/repro.sh builds and runs such folders.
#include <algorithm>
#include <fstream>
#include <iterator>

#include "conformance/repro.h"
#include "mulciber/error.h"
#include "tests/catch.h"
#include "tests/device.h"
#include "tests/support.h"

using namespace mulciber;
using namespace mulciber::conformance;

namespace {

std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

const SuiteCase& first_case(const std::string& op, const std::string& row) {
  for (const SuiteCase& c : suite()) {
    if (c.op == op && c.row == row) return c;
  }
  throw KernelError(row, "has no case", "");
}

}  // namespace

TEST_CASE("A repro folder is whole and says what came out") {
  const tests::TemporaryFolder folder;
  const SuiteCase* c = find_case("mulciber.matmul.tiled_f32.m33_n37_k19");
  REQUIRE(c);
  const CaseResult result{Status::kFail, "output 0 row 3 column 4: 5, expected 6"};
  const std::vector<std::string> names =
      write_repro(tests::shared_device(), *c, 0, &result, folder.path() / "new");
  for (const std::string& name : names) {
    INFO(name);
    CHECK(std::filesystem::file_size(folder.path() / "new" / name) > 0);
  }
  for (const char* name : {"case.h", "repro.c", "CMakeLists.txt", "input0.bin", "input1.bin",
                           "expected0.bin", "bounds0.bin", "matmul_tiled_f32.spv"}) {
    INFO(name);
    CHECK(std::find(names.begin(), names.end(), name) != names.end());
  }
  CHECK(std::filesystem::file_size(folder.path() / "new/input0.bin") == 4 * 33 * 19);
  CHECK(std::filesystem::file_size(folder.path() / "new/expected0.bin") == 8 * 33 * 37);
  const std::string readme = text_of(folder.path() / "new/README.md");
  CHECK(readme.find(result.detail) != std::string::npos);
  CHECK(readme.find(tests::shared_device().capabilities().name) != std::string::npos);
}

TEST_CASE("Dependent dispatches of a repro wait for each other") {
  const tests::TemporaryFolder folder;
  const SuiteCase* found = nullptr;
  for (const SuiteCase& c : suite()) {
    // Several steps run, each on the state that the one before left.
    if (c.row == "beam_step" && c.name.find("steps_10") != std::string::npos) found = &c;
  }
  REQUIRE(found);
  write_repro(tests::shared_device(), *found, 0, nullptr, folder.path());
  const std::string header = text_of(folder.path() / "case.h");
  const size_t nodes = count_of(header, "static const struct constant constants");
  CHECK(nodes > 1);
  CHECK(count_of(header, ", true, {1, 1, 1}},") == nodes - 1);
  CHECK(count_of(header, ", false, {1, 1, 1}},") == 1);
}

TEST_CASE("A row that the device cannot run gives no repro") {
  const std::unique_ptr<Device> phone =
      Device::open(options_from_environment({.limits = "android-2021"}));
  const tests::TemporaryFolder folder;
  CHECK_THROWS_AS(
      write_repro(*phone, first_case("matmul", "matmul_shuffle_f32"), 0, nullptr, folder.path()),
      KernelError);
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("A folder that cannot be made is an error") {
  const tests::TemporaryFolder folder;
  std::ofstream(folder.path() / "file") << "in the way";
  CHECK_THROWS_AS(
      write_repro(tests::shared_device(), *find_case("mulciber.matmul.tiled_f32.m33_n37_k19"), 0,
                  nullptr, folder.path() / "file/new"),
      ModelError);
}
