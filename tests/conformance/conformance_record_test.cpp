// The file of a run is read as it was written, also when it breaks off.
#include <cmath>
#include <limits>

#include "conformance/records/record.h"
#include "tests/catch.h"
#include "tests/model_error.h"

using namespace mulciber;
using namespace mulciber::conformance;

namespace {

Fingerprint sample_fingerprint() {
  Fingerprint f;
  f.device = "a device";
  f.driver_id = "mesa_llvmpipe";
  f.driver_version = "22.3.6";
  f.features = {"16-bit storage", "subgroup shuffle"};
  f.device_limits = {{"maxStorageBufferRange", "134217728"}};
  f.row_hashes = {{"matmul_tiled_f32", "0123456789abcdef"}};
  f.seed = 0xfedcba9876543210;
  f.repeats = 20;
  f.shake = "some";
  f.validated = true;
  f.started = "2026-01-02T03:04:05Z";
  return f;
}

CaseRecord sample_case(std::string name, Status status) {
  CaseRecord r;
  r.name = std::move(name);
  r.op = "matmul";
  r.row = "matmul_tiled_f32";
  r.types = "f32";
  r.result = {status, "", 0.25, 1e-9, 21, 0.5};
  return r;
}

}  // namespace

TEST_CASE("A run is read as it was written") {
  tests::TemporaryFolder folder;
  const auto file = folder.path() / "run.jsonl";
  CaseRecord failed = sample_case("mulciber.matmul.a", Status::kWaiver);
  failed.result.detail = "a \"quoted\" word\nand a second line";
  failed.result.worst_error = std::numeric_limits<double>::infinity();
  failed.result.orders = {"reverse", "random 1"};
  failed.waived = "known (link)";
  failed.waived_from = Status::kFail;
  {
    RunWriter writer(file, sample_fingerprint());
    writer.add(failed);
    writer.add(sample_case("mulciber.matmul.b", Status::kPass));
    CHECK_FALSE(read_run(file).complete);
    writer.finish({failed}, 1.5);
  }
  const RunRecord run = read_run(file);
  CHECK(run.complete);
  CHECK(run.whole_bytes == std::filesystem::file_size(file));
  CHECK(difference(run.fingerprint, sample_fingerprint()).empty());
  CHECK(run.fingerprint.started == "2026-01-02T03:04:05Z");
  CHECK(run.fingerprint.seed == 0xfedcba9876543210);
  CHECK(run.fingerprint.shake == "some");
  REQUIRE(run.cases.size() == 2);
  const CaseRecord& r = run.cases[0];
  CHECK(r.name == failed.name);
  CHECK(r.op == "matmul");
  CHECK(r.row == "matmul_tiled_f32");
  CHECK(r.types == "f32");
  CHECK(r.result.status == Status::kWaiver);
  CHECK(r.result.detail == failed.result.detail);
  CHECK(std::isinf(r.result.worst_error));
  CHECK(r.result.nmse == 1e-9);
  CHECK(r.result.repeats == 21);
  CHECK(r.result.seconds == 0.5);
  CHECK(r.result.orders == failed.result.orders);
  CHECK(run.cases[1].result.orders.empty());
  CHECK(r.waived == "known (link)");
  CHECK(r.waived_from == Status::kFail);
  CHECK(run.cases[1].result.worst_error == 0.25);
}

TEST_CASE("A run that breaks off in a line is read and goes on") {
  tests::TemporaryFolder folder;
  const auto file = folder.path() / "run.jsonl";
  {
    RunWriter writer(file, sample_fingerprint());
    writer.add(sample_case("a", Status::kPass));
    writer.add(sample_case("b", Status::kPass));
  }
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 7);
  const RunRecord broken = read_run(file);
  CHECK(broken.cases.size() == 1);
  {
    RunWriter writer(file, broken);
    writer.add(sample_case("b", Status::kFail));
    writer.add(sample_case("a", Status::kFlaky));  // a second time: the later result counts
  }
  const RunRecord whole = read_run(file);
  REQUIRE(whole.cases.size() == 2);
  CHECK(whole.cases[0].name == "a");
  CHECK(whole.cases[0].result.status == Status::kFlaky);
  CHECK(whole.cases[1].result.status == Status::kFail);
  CHECK_FALSE(whole.complete);
}

TEST_CASE("Words that are not UTF-8 do not stop a run from being written") {
  CaseRecord r = sample_case("a", Status::kCrash);
  r.result.detail = "LLVM \xff\xfe error";
  CHECK(read_case(to_line(r), "here").result.detail.starts_with("LLVM "));
}

TEST_CASE("Fingerprints differ by what was tested, not by when") {
  Fingerprint one = sample_fingerprint(), other = one;
  other.started = "2027-01-01T00:00:00Z";
  CHECK(difference(other, one).empty());
  other.driver_version = "25.0.7";
  CHECK(difference(other, one) == "driver_version \"25.0.7\", before \"22.3.6\"");
}

TEST_CASE("A file that is no run is refused by name and line") {
  tests::TemporaryFolder folder;
  auto message = [&](std::string_view text) {
    const auto file = tests::write_file(folder.path() / "run.jsonl", text);
    return tests::model_error([&] { read_run(file); }).value_or("no error");
  };
  const std::string first = to_line(sample_fingerprint()) + "\n";
  CHECK(message("").find("no whole line") != std::string::npos);
  CHECK(message("not json\n").find("run.jsonl:1") != std::string::npos);
  CHECK(message("[]\n").find("run.jsonl:1") != std::string::npos);
  CHECK(message(to_line(sample_case("a", Status::kPass)) + "\n").find("fingerprint") !=
        std::string::npos);
  CHECK(message(first + first).find("run.jsonl:2") != std::string::npos);
  CHECK(message(first + R"({"kind":"case","name":"a","status":"Great"})"
                        "\n")
            .find("Great") != std::string::npos);
  CHECK(message(first + R"({"kind":"case","name":5,"status":"Pass"})"
                        "\n")
            .find("run.jsonl:2") != std::string::npos);
  CHECK(tests::model_error([&] { read_run(folder.path() / "none"); })->find("cannot be read") !=
        std::string::npos);
}
