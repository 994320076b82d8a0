// Reading safetensors files and Hugging Face folders, good ones and hostile ones.
#include "checkpoints/safetensors.h"

#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "checkpoints/checkpoint.h"
#include "checkpoints/json.h"
#include "tests/catch.h"
#include "tests/model_error.h"

namespace {

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

std::string safetensors(const std::string& header, std::size_t data_bytes,
                        std::optional<std::uint64_t> claimed = {}) {
  const std::uint64_t length = claimed.value_or(header.size());
  std::string file(8, '\0');
  std::memcpy(file.data(), &length, 8);
  file += header;
  for (std::size_t i = 0; i < data_bytes; ++i) file += static_cast<char>(i);
  return file;
}

const std::string kTwoTensors =
    R"({"__metadata__":{"format":"pt"},"b":{"dtype":"F16","shape":[3],"data_offsets":[8,14]},)"
    R"("a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]}})";

/// The message for a file with these bytes, or "" when it opens.
std::string refusal(const std::string& bytes) {
  TemporaryFolder folder;
  const fs::path path = write_file(folder.path() / "model.safetensors", bytes);
  const auto message = model_error([&] { SafetensorsFile file(path); });
  if (message) CHECK_THAT(*message, ContainsSubstring(path.string()));
  return message.value_or("");
}

std::string one_tensor(const std::string& entry, std::size_t data_bytes = 8) {
  return refusal(safetensors("{\"w\":" + entry + "}", data_bytes));
}

}  // namespace

TEST_CASE("a safetensors file gives its tensors in the order of their bytes") {
  TemporaryFolder folder;
  const SafetensorsFile file(
      write_file(folder.path() / "x.safetensors", safetensors(kTwoTensors + "  ", 14)));
  REQUIRE(file.tensors().size() == 2);
  const CheckpointTensor& a = file.tensors()[0];
  CHECK(a.name == "a");
  CHECK(a.type == CheckpointType::kF32);
  CHECK(a.shape == std::vector<std::uint64_t>{2, 1});
  CHECK(a.elements() == 2);
  CHECK(a.shape_text() == "[2, 1]");
  CHECK(a.bytes.size() == 8);
  CHECK(std::to_integer<int>(a.bytes[7]) == 7);
  REQUIRE(file.find("b") != nullptr);
  CHECK(std::to_integer<int>(file.find("b")->bytes[0]) == 8);
  CHECK(std::string(name_of(file.find("b")->type)) == "F16");
  CHECK(file.find("c") == nullptr);
  CHECK(file.metadata().at("format") == "pt");
}

TEST_CASE("scalars and empty tensors are valid") {
  CHECK(one_tensor(R"({"dtype":"F64","shape":[],"data_offsets":[0,8]})") == "");
  CHECK(one_tensor(R"({"dtype":"F64","shape":[0,18446744073709551615,9],"data_offsets":[0,0]})",
                   0) == "");
  CHECK(refusal(safetensors("{}", 0)) == "");
}

TEST_CASE("the mapping outlives a move of the file object") {
  TemporaryFolder folder;
  SafetensorsFile first(write_file(folder.path() / "x", safetensors(kTwoTensors, 14)));
  const SafetensorsFile second(std::move(first));
  CHECK(std::to_integer<int>(second.find("b")->bytes[5]) == 13);
}

TEST_CASE("a malformed safetensors header is refused by name") {
  CHECK_THAT(refusal(""), ContainsSubstring("0 bytes"));
  CHECK_THAT(refusal("1234567"), ContainsSubstring("too few"));
  CHECK_THAT(refusal(safetensors("{}", 0, std::uint64_t{1} << 60)),
             ContainsSubstring("1152921504606846976"));
  CHECK_THAT(refusal(safetensors("{}", 0, ~std::uint64_t{0})),
             ContainsSubstring("claims a header"));
  CHECK_THAT(refusal(safetensors("[]", 0)), ContainsSubstring("its object"));
  CHECK_THAT(refusal(safetensors("{", 0)), ContainsSubstring("not valid JSON"));
  CHECK_THAT(refusal(safetensors("", 0)), ContainsSubstring("not valid JSON"));
  CHECK_THAT(refusal(safetensors("\xff\xfe", 0)), ContainsSubstring("not valid JSON"));
  CHECK_THAT(refusal(safetensors(std::string(50000, '['), 0)), ContainsSubstring("its object"));
  CHECK_THAT(refusal(safetensors("{\"a\":" + std::string(50000, '['), 0)),
             ContainsSubstring("an array"));
  std::string deep;
  for (int i = 0; i < 50000; ++i) deep += "{\"a\":";
  CHECK_THAT(refusal(safetensors(deep, 0)), ContainsSubstring("unknown field"));
  CHECK_THAT(refusal(safetensors(R"({"__metadata__":{"a":1}})", 0)),
             ContainsSubstring("metadata text"));
  CHECK_THAT(refusal(safetensors(R"({"__metadata__":{},"__metadata__":{}})", 0)),
             ContainsSubstring("twice"));
}

TEST_CASE("a malformed tensor entry is refused by name") {
  CHECK_THAT(one_tensor(R"({"dtype":"F128","shape":[1],"data_offsets":[0,8]})"),
             ContainsSubstring("'w'") && ContainsSubstring("F128"));
  CHECK_THAT(one_tensor(R"({"dtype":"F32","shape":[2]})"), ContainsSubstring("lacks"));
  CHECK_THAT(one_tensor(R"({"dtype":"F32","shape":[2],"data_offsets":[0]})"),
             ContainsSubstring("lacks"));
  CHECK_THAT(one_tensor(R"({"dtype":"F32","shape":[2],"data_offsets":[0,4,8]})"),
             ContainsSubstring("too many"));
  CHECK_THAT(one_tensor(R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})"),
             ContainsSubstring("-2"));
  CHECK_THAT(one_tensor(R"({"dtype":"F32","shape":[2.0],"data_offsets":[0,8]})"),
             ContainsSubstring("2.0"));
  CHECK_THAT(one_tensor(R"({"dtype":"F32","shape":["2"],"data_offsets":[0,8]})"),
             ContainsSubstring("text"));
  CHECK_THAT(one_tensor(R"({"dtype":"F32","shape":[[2]],"data_offsets":[0,8]})"),
             ContainsSubstring("array"));
  CHECK_THAT(one_tensor(R"({"dtype":"F32","shape":null,"data_offsets":[0,8]})"),
             ContainsSubstring("null"));
  CHECK_THAT(one_tensor(R"({"dtype":true,"shape":[2],"data_offsets":[0,8]})"),
             ContainsSubstring("boolean"));
  CHECK_THAT(one_tensor("7"), ContainsSubstring("7"));
  CHECK_THAT(one_tensor(R"({"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]})"),
             ContainsSubstring("twice"));
  CHECK_THAT(one_tensor(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8],"more":1})"),
             ContainsSubstring("more"));
  CHECK_THAT(one_tensor(R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})"),
             ContainsSubstring("need 12 bytes"));
  CHECK_THAT(one_tensor(R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})"),
             ContainsSubstring("bytes 8 to 0"));
  CHECK_THAT(one_tensor(R"({"dtype":"F32","shape":[4],"data_offsets":[0,16]})"),
             ContainsSubstring("only 8 bytes"));
  CHECK_THAT(one_tensor(R"({"dtype":"F32","shape":[1],"data_offsets":[4,8]})"),
             ContainsSubstring("hole"));
  CHECK_THAT(one_tensor(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})"),
             ContainsSubstring("end at 4"));
  CHECK_THAT(one_tensor(R"({"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]})"),
             ContainsSubstring("exceeds 64 bits"));
  CHECK_THAT(one_tensor(R"({"dtype":"F64","shape":[2305843009213693953],"data_offsets":[0,8]})"),
             ContainsSubstring("exceeds 64 bits"));
  CHECK_THAT(
      one_tensor(
          R"({"dtype":"U8","shape":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,8],"data_offsets":[0,8]})"),
      ContainsSubstring("too many"));
  CHECK_THAT(one_tensor(R"({"dtype":"F32","shape":[18446744073709551616],"data_offsets":[0,8]})"),
             ContainsSubstring("18446744073709551616"));
}

TEST_CASE("tensors may neither overlap nor share a name") {
  CHECK_THAT(refusal(safetensors(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                                 R"("b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})",
                                 6)),
             ContainsSubstring("'b'") && ContainsSubstring("overlaps"));
  CHECK_THAT(refusal(safetensors(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                                 R"("a":{"dtype":"U8","shape":[2],"data_offsets":[4,6]}})",
                                 6)),
             ContainsSubstring("'a'") && ContainsSubstring("twice"));
}

TEST_CASE("control characters of a tensor name are escaped in messages") {
  const std::string message = refusal(
      safetensors(R"({"\u001b[31m\u0000":{"dtype":"U8","shape":[4],"data_offsets":[0,5]}})", 5));
  CHECK_THAT(message, ContainsSubstring("\\x1b[31m\\x00"));
}

TEST_CASE("a safetensors file cut anywhere is refused") {
  const std::string whole = safetensors(kTwoTensors, 14);
  REQUIRE(refusal(whole) == "");
  for (std::size_t length = 0; length < whole.size(); ++length) {
    INFO("cut to " << length << " bytes");
    CHECK(refusal(whole.substr(0, length)) != "");
  }
}

TEST_CASE("a flipped bit never crashes, and what still opens stays within the file") {
  const std::string whole = safetensors(kTwoTensors, 14);
  TemporaryFolder folder;
  for (std::size_t bit = 0; bit < (whole.size() - 14) * 8; ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    const fs::path path = write_file(folder.path() / "x.safetensors", damaged);
    model_error([&] {
      const SafetensorsFile file(path);
      std::size_t total = 0;
      for (const CheckpointTensor& tensor : file.tensors()) total += tensor.bytes.size();
      CHECK(total == 14);
    });
  }
}

TEST_CASE("what is not a regular file is refused") {
  TemporaryFolder folder;
  CHECK_THAT(model_error([&] { SafetensorsFile file(folder.path()); }).value_or(""),
             ContainsSubstring("is a folder"));
  CHECK_THAT(model_error([&] { SafetensorsFile file(folder.path() / "none"); }).value_or(""),
             ContainsSubstring("cannot be opened"));
  REQUIRE(::system(("mkfifo '" + (folder.path() / "pipe").string() + "'").c_str()) == 0);
  CHECK_THAT(model_error([&] { SafetensorsFile file(folder.path() / "pipe"); }).value_or(""),
             ContainsSubstring("not a regular file"));
}

TEST_CASE("JSON from outside is bounded") {
  const auto refusal_of = [](const std::string& text, JsonLimits limits = {}) {
    return model_error([&] { parse_json(text, "x.json", limits); }).value_or("");
  };
  CHECK(refusal_of(R"({"a":[1,{"b":null}],"c":-2.5e3})") == "");
  CHECK_THAT(refusal_of(R"({"a":1,"a":2})"), ContainsSubstring("'a' stands twice"));
  CHECK_THAT(refusal_of(std::string(100000, '[')), ContainsSubstring("deeper than 64"));
  CHECK_THAT(refusal_of("[1,2,3]", {.values = 3}), ContainsSubstring("more than 3"));
  CHECK_THAT(refusal_of("[1,2,3]", {.bytes = 6}), ContainsSubstring("7 bytes"));
  CHECK_THAT(refusal_of("{\"\xc3\":1}"), ContainsSubstring("not valid JSON"));
  CHECK_THAT(refusal_of(""), ContainsSubstring("x.json") && ContainsSubstring("not valid JSON"));
  CHECK_THAT(refusal_of("{} {}"), ContainsSubstring("not valid JSON"));
  const Json json = parse_json(R"({"k":{"x":[1,2,[3]]},"a":true})", "x");
  CHECK(json.dump() == R"({"a":true,"k":{"x":[1,2,[3]]}})");
}

TEST_CASE("a sharded checkpoint is one set of tensors") {
  TemporaryFolder folder;
  const fs::path& path = folder.path();
  const std::string entry = R"(:{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})";
  write_file(path / "config.json", R"({"model_type":"marian"})");
  write_file(path / "one.safetensors", safetensors("{\"a\"" + entry, 4));
  write_file(path / "two.safetensors", safetensors("{\"b\"" + entry, 4));
  const auto index = [&](const std::string& map) {
    write_file(path / "model.safetensors.index.json", "{\"weight_map\":" + map + "}");
    return model_error([&] { Checkpoint checkpoint(path); }).value_or("");
  };
  REQUIRE(index(R"({"a":"one.safetensors","b":"two.safetensors"})") == "");
  const Checkpoint checkpoint(path);
  CHECK(checkpoint.names() == std::vector<std::string>{"a", "b"});
  CHECK(checkpoint.total_bytes() == 8);
  CHECK(checkpoint.file_count() == 2);
  CHECK(checkpoint.model_type() == "marian");
  CHECK(checkpoint.generation_config() == nullptr);
  CHECK(checkpoint.at("b").bytes.size() == 4);
  CHECK(checkpoint.find("c") == nullptr);
  CHECK_THAT(model_error([&] { checkpoint.at("c"); }).value_or(""), ContainsSubstring("'c'"));

  CHECK_THAT(index(R"({"a":"../one.safetensors"})"), ContainsSubstring("not a file name"));
  CHECK_THAT(index(R"({"a":"/etc/passwd"})"), ContainsSubstring("not a file name"));
  CHECK_THAT(index(R"({"a":".."})"), ContainsSubstring("not a file name"));
  CHECK_THAT(index(R"({"a":""})"), ContainsSubstring("not a file name"));
  CHECK_THAT(index(R"({"a":1})"), ContainsSubstring("not a file name"));
  CHECK_THAT(index(R"({"b":"one.safetensors"})"), ContainsSubstring("does not hold it"));
  CHECK_THAT(index(R"({"a":"three.safetensors"})"),
             ContainsSubstring("three.safetensors: cannot be opened"));
  CHECK_THAT(index("[]"), ContainsSubstring("weight_map"));
}

TEST_CASE("a folder without usable weights says what is missing") {
  TemporaryFolder folder;
  const auto refusal_of = [&] {
    return model_error([&] { Checkpoint checkpoint(folder.path()); }).value_or("");
  };
  CHECK_THAT(refusal_of(), ContainsSubstring("neither model.safetensors nor"));
  write_file(folder.path() / "pytorch_model.bin", "x");
  CHECK_THAT(refusal_of(), ContainsSubstring("pytorch_model.bin"));
  write_file(folder.path() / "model.safetensors", safetensors(kTwoTensors, 14));
  CHECK(refusal_of() == "");
  const Checkpoint checkpoint(folder.path());
  CHECK_THAT(model_error([&] { checkpoint.config(); }).value_or(""),
             ContainsSubstring("config.json"));
  write_file(folder.path() / "config.json", "[1]");
  CHECK_THAT(refusal_of(), ContainsSubstring("not a JSON object"));
  fs::remove(folder.path() / "config.json");
  fs::create_directory(folder.path() / "config.json");
  CHECK_THAT(refusal_of(), ContainsSubstring("is a folder"));
}

TEST_CASE("every fixture checkpoint opens") {
  const fs::path fixtures = fixtures_dir();
  if (fixtures.empty()) MULCIBER_SKIP("no fixtures folder (set MULCIBER_FIXTURES)");
  int opened = 0;
  for (const char* group : {"models", "variants"})
    for (const auto& entry : fs::directory_iterator(fixtures / group)) {
      INFO(entry.path());
      const Checkpoint checkpoint(entry.path());
      CHECK(checkpoint.total_bytes() > 0);
      CHECK_FALSE(checkpoint.model_type().empty());
      ++opened;
    }
  CHECK(opened >= 20);
  const Checkpoint sharded(fixtures / "variants/qwen2_sharded"), whole(fixtures / "models/qwen2");
  REQUIRE(sharded.names() == whole.names());
  CHECK(sharded.file_count() == 3);
  for (const CheckpointTensor* tensor : whole.tensors()) {
    const CheckpointTensor& other = sharded.at(tensor->name);
    CHECK(other.shape == tensor->shape);
    CHECK(std::equal(tensor->bytes.begin(), tensor->bytes.end(), other.bytes.begin(),
                     other.bytes.end()));
  }
}

TEST_CASE("every bad safetensors fixture is refused") {
  const Json manifest = read_json(data_dir() / "bad/manifest.json");
  for (const Json& entry : manifest.at("entries")) {
    if (entry.at("kind") != "safetensors") continue;
    const fs::path path = data_dir() / "bad" / entry.at("path").get<std::string>();
    INFO(path);
    const bool control = entry.at("wrong").get<std::string>().find("control") != std::string::npos;
    CHECK(model_error([&] { SafetensorsFile file(path); }).has_value() != control);
  }
}
