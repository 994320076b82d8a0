// Outside vectors and malformed files as cases: those of the reference data, and hand-made ones.
#include "conformance/vectors/vectors.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "apps/conform/models.h"
#include "checkpoints/json.h"
#include "conformance/malformed.h"
#include "mulciber/error.h"
#include "tests/catch.h"
#include "tests/device.h"
#include "tests/model_error.h"
#include "tests/support.h"

using namespace mulciber;
using namespace mulciber::conformance;

namespace {

CaseResult run(const std::vector<SuiteCase>& cases, const std::string& name) {
  for (const SuiteCase& c : cases) {
    if (c.name == name) return c.run(tests::shared_device(), {.repeats = 1});
  }
  FAIL("there is no case " << name);
  return {};
}

void write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

/// Writes a safetensors file of f32 tensors that holds these values alone.
void write_tensors(const std::filesystem::path& path, const std::string& header,
                   const std::vector<float>& values) {
  const uint64_t length = header.size();
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(&length), 8);
  file << header;
  file.write(reinterpret_cast<const char*>(values.data()),
             static_cast<std::streamsize>(values.size() * 4));
}

/// Alters the first number of a tensor: adds 0.01 to an F64; sets an I64 to `id`.
void alter_first_value(const std::filesystem::path& file, const std::string& tensor,
                       int64_t id = 39) {
  std::fstream stream(file, std::ios::binary | std::ios::in | std::ios::out);
  uint64_t length = 0;
  stream.read(reinterpret_cast<char*>(&length), 8);
  std::string header(length, ' ');
  stream.read(header.data(), static_cast<std::streamsize>(length));
  const Json entry = Json::parse(header).at(tensor);
  const auto at =
      static_cast<std::streamoff>(8 + length + entry.at("data_offsets")[0].get<size_t>());
  double value = 0;
  stream.seekg(at).read(reinterpret_cast<char*>(&value), 8);
  value += 0.01;
  const bool whole = entry.at("dtype") == "I64";
  stream.seekp(at).write(whole ? reinterpret_cast<char*>(&id) : reinterpret_cast<char*>(&value), 8);
}

}  // namespace

TEST_CASE("Attention meets recorded values of an independent implementation") {
  const auto folder = tests::fixtures_dir();
  if (folder.empty()) MULCIBER_SKIP("no reference data: set MULCIBER_FIXTURES");
  size_t ran = 0;
  for (const SuiteCase& c : load_vectors(folder / "attention/attention.json")) {
    const CaseResult result = c.run(tests::shared_device(), {.repeats = 1});
    INFO(c.name << ": " << name_of(result.status) << ", " << result.detail);
    // Rotary embedding of queries and keys is an op of its own in the decoder.
    if (c.name.starts_with("mulciber.vectors.rope")) {
      CHECK(result.status == Status::kNotSupported);
      continue;
    }
    CHECK(result.status == Status::kPass);
    ++ran;
  }
  CHECK(ran > 200);
}

TEST_CASE("Recurrent networks meet values recorded beside this test") {
  const auto cases = load_vectors(tests::data_dir() / "recurrent.json");
  REQUIRE(cases.size() == 2 * 8);
  CHECK(cases[0].name == "mulciber.vectors.lstm_cell");
  for (const SuiteCase& c : cases) {
    const CaseResult result = c.run(tests::shared_device(), {.repeats = 1});
    INFO(c.name << ": " << name_of(result.status) << ", " << result.detail);
    CHECK(result.status == Status::kPass);
  }
}

TEST_CASE("A recorded result of a recurrent network that is wrong fails") {
  const tests::TemporaryFolder folder;
  std::filesystem::copy(tests::data_dir() / "recurrent.json", folder.path() / "recurrent.json");
  const auto path = folder.path() / "recurrent.safetensors";
  for (const char* tensor : {"gru_cell/out_h", "lstm_cell/out_c", "bilstm/h_n", "bigru/out",
                             "bahdanau/greedy_ids", "luong_input_feeding/forced_weights"}) {
    INFO(tensor);
    std::filesystem::copy(tests::data_dir() / "recurrent.safetensors", path,
                          std::filesystem::copy_options::overwrite_existing);
    alter_first_value(path, tensor);
    const std::string entry(tensor, std::string_view(tensor).find('/'));
    const auto cases = load_vectors(folder.path() / "recurrent.json");
    CHECK(run(cases, "mulciber.vectors." + entry).status == Status::kFail);
    CHECK(run(cases, "mulciber.vectors." + entry + ".f16").status == Status::kFail);
  }
  // Ids are checked when the file is read.
  alter_first_value(path, "bahdanau/in_src", 40);
  CHECK(tests::model_error([&] {
          load_vectors(folder.path() / "recurrent.json");
        })->find("bahdanau/in_src") != std::string::npos);
}

TEST_CASE("Kinds of attention and of networks that nothing serves are named") {
  const tests::TemporaryFolder folder;
  const std::pair<const char*, const char*> unknown[] = {
      {R"("score": "cosine", "mask": "none")", "no score `cosine`"},
      {R"("hidden": 3)", "no network of these members"},
      {R"("score": "dot", "mask": "spiral")", "no mask `spiral`"},
      {R"("score": "dot", "mask": "none", "bias": "sandwich")", "no score bias (`sandwich`)"},
      {R"("score": "dot", "mask": "none", "extra": {"dropout": 1})", "no `dropout`"}};
  for (const auto& [entry, reason] : unknown) {
    write(folder.path() / "v.json", std::string(R"({"cases": [{"name": "a", )") + entry + "}]}");
    CHECK(run(load_vectors(folder.path() / "v.json"), "mulciber.vectors.a").detail == reason);
  }
}

TEST_CASE("Attention of every kind meets values recorded beside this test") {
  size_t ran = 0;
  for (const SuiteCase& c : load_vectors(tests::data_dir() / "attention/attention.json")) {
    const CaseResult result = c.run(tests::shared_device(), {.repeats = 1});
    INFO(c.name << ": " << name_of(result.status) << ", " << result.detail);
    CHECK(result.status == Status::kPass);
    ++ran;
  }
  CHECK(ran == 2 * 16);
}

TEST_CASE("A vector whose recorded result is wrong fails") {
  const tests::TemporaryFolder folder;
  const std::string json =
      R"({"cases": [{"name": "Tiny one", "score": "dot", "mask": "none", "batch": 1, "heads": 1,
    "kv_heads": 1, "q_len": 1, "kv_len": 2, "d_q": 1, "d_v": 2}]})";
  const std::string header =
      R"({"Tiny one/q":{"dtype":"F32","shape":[1,1,1,1],"data_offsets":[0,4]},)"
      R"("Tiny one/k":{"dtype":"F32","shape":[1,1,2,1],"data_offsets":[4,12]},)"
      R"("Tiny one/v":{"dtype":"F32","shape":[1,1,2,2],"data_offsets":[12,28]},)"
      R"("Tiny one/out":{"dtype":"F32","shape":[1,1,1,2],"data_offsets":[28,36]}})";
  write(folder.path() / "v.json", json);
  // Two scores are equal: the result is the mean of both values.
  write_tensors(folder.path() / "v.safetensors", header, {2, 3, 3, 10, 20, 30, 60, 20, 40});
  CHECK(run(load_vectors(folder.path() / "v.json"), "mulciber.vectors.tiny_one").status ==
        Status::kPass);
  write_tensors(folder.path() / "v.safetensors", header, {2, 3, 3, 10, 20, 30, 60, 20, 40.01f});
  CHECK(run(load_vectors(folder.path() / "v.json"), "mulciber.vectors.tiny_one").status ==
        Status::kFail);

  write(folder.path() / "v.json",
        R"({"cases": [{"name": "a", "score": "dot", "mask": "none", "batch": 0}]})");
  CHECK_THROWS_AS(load_vectors(folder.path() / "v.json"), ModelError);
  write(folder.path() / "v.json", R"({"cases": 3})");
  CHECK_THROWS_AS(load_vectors(folder.path() / "v.json"), ModelError);
}

TEST_CASE("Malformed files must be refused, and controls must open") {
  const tests::TemporaryFolder folder;
  write(folder.path() / "manifest.json",
        R"({"entries": [{"path": "short.safetensors", "expectation": "clear error"},
                        {"path": "Good.safetensors", "expectation": "control: loads"},
                        {"path": "wrongly_good.safetensors", "expectation": "clear error"},
                        {"path": "wrongly_short.safetensors", "expectation": "control"}]})");
  for (const char* name : {"short", "wrongly_short"})
    write(folder.path() / (std::string(name) + ".safetensors"), "abc");
  for (const char* name : {"Good", "wrongly_good"}) {
    write_tensors(folder.path() / (std::string(name) + ".safetensors"),
                  R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", {1});
  }
  const auto cases = load_malformed(folder.path() / "manifest.json", apps::models_under_test());
  CHECK(run(cases, "mulciber.malformed.short_safetensors").status == Status::kPass);
  CHECK(run(cases, "mulciber.malformed.good_safetensors").status == Status::kPass);
  CHECK(run(cases, "mulciber.malformed.wrongly_good_safetensors").status == Status::kFail);
  CHECK(run(cases, "mulciber.malformed.wrongly_short_safetensors").status == Status::kFail);
}

TEST_CASE("The malformed files of the reference data are refused") {
  const auto cases =
      load_malformed(tests::data_dir() / "bad/manifest.json", apps::models_under_test());
  CHECK(cases.size() >= 3);
  for (const SuiteCase& c : cases) {
    const CaseResult result = run(cases, c.name);
    INFO(c.name << ": " << name_of(result.status) << ", " << result.detail);
    CHECK((result.status == Status::kPass || result.status == Status::kNotSupported));
  }
}
