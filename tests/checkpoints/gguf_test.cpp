// GGUF files that tools wrote, and made-up ones that must be refused.
#include <cstring>
#include <fstream>

#include <nlohmann/json.hpp>

#include "checkpoints/gguf.h"
#include "checkpoints/safetensors.h"
#include "checkpoints/tensor_values.h"
#include "mulciber/error.h"
#include "tests/catch.h"
#include "tests/gguf_bytes.h"
#include "tests/support.h"

using namespace mulciber;
using tests::GgufBytes;

namespace {

void refused(const GgufBytes& bytes, const std::string& part) {
  INFO(part);
  CHECK_THROWS_WITH(GgufFile(bytes.write()), Catch::Matchers::ContainsSubstring(part));
}

}  // namespace

TEST_CASE("GGUF metadata of every type is read") {
  GgufBytes bytes(2);
  bytes.counts(1, 15);
  bytes.key("a.u8", GgufType::kU8).number<uint8_t>(200);
  bytes.key("a.i8", GgufType::kI8).number<int8_t>(-5);
  bytes.key("a.u16", GgufType::kU16).number<uint16_t>(65535);
  bytes.key("a.i16", GgufType::kI16).number<int16_t>(-300);
  bytes.key("a.u32", GgufType::kU32).number<uint32_t>(4000000000);
  bytes.key("a.i32", GgufType::kI32).number<int32_t>(-70000);
  bytes.key("a.u64", GgufType::kU64).number<uint64_t>(1ull << 60);
  bytes.key("a.i64", GgufType::kI64).number<int64_t>(-(1ll << 60));
  bytes.key("a.f32", GgufType::kF32).number(0.5f);
  bytes.key("a.f64", GgufType::kF64).number(0.1);
  bytes.key("a.bool", GgufType::kBool).number<uint8_t>(1);
  bytes.key("a.text", GgufType::kString).text("words");
  bytes.key("a.texts", GgufType::kArray)
      .number<uint32_t>(8)
      .number<uint64_t>(2)
      .text("")
      .text("two");
  bytes.key("a.numbers", GgufType::kArray)
      .number<uint32_t>(6)
      .number<uint64_t>(2)
      .number(1.5f)
      .number(-2.0f);
  bytes.key("a.nested", GgufType::kArray).number<uint32_t>(9).number<uint64_t>(1);
  bytes.number<uint32_t>(5).number<uint64_t>(2).number(7).number(8);
  bytes.tensor("weight", {64, 3}, 8, 0).data(3 * 2 * 34);
  const GgufFile file(bytes.write());
  auto value = [&](const char* key) { return *file.find_value(key); };
  CHECK(file.version() == 2);
  CHECK(value("a.u8").integer() == 200);
  CHECK(value("a.i8").integer() == -5);
  CHECK(value("a.u16").integer() == 65535);
  CHECK(value("a.i16").integer() == -300);
  CHECK(value("a.u32").integer() == 4000000000);
  CHECK(value("a.i32").integer() == -70000);
  CHECK(value("a.u64").integer() == 1ll << 60);
  CHECK(value("a.i64").integer() == -(1ll << 60));
  CHECK(value("a.f32").number() == 0.5);
  CHECK(value("a.f64").number() == 0.1);
  CHECK(value("a.bool").boolean());
  CHECK(value("a.text").text() == "words");
  CHECK(value("a.texts").texts() == std::vector<std::string_view>{"", "two"});
  CHECK(value("a.numbers").numbers() == std::vector<double>{1.5, -2});
  CHECK(value("a.nested").is_array);
  CHECK(file.find_value("absent") == nullptr);
  REQUIRE(file.find("weight"));
  CHECK(file.find("weight")->shape == std::vector<uint64_t>{3, 64});
  CHECK(file.find("weight")->type == CheckpointType::kQ8_0);
}

TEST_CASE("malformed GGUF files are refused with the reason") {
  refused(GgufBytes(1).counts(0, 0), "version 1");
  refused(GgufBytes(0x03000000).counts(0, 0), "big-endian");
  refused(GgufBytes().number<uint64_t>(0), "the GGUF header needs 8 bytes");
  refused(GgufBytes().counts(1ull << 60, 0), "claims");
  refused(GgufBytes().counts(0, 1ull << 60), "claims");
  refused(GgufBytes().counts(0, 1).number<uint64_t>(1ull << 62).raw("12345678", 8),
          "a metadata key needs");
  refused(GgufBytes().counts(0, 1).key("k", GgufType(13)).number(0), "unknown type 13");
  refused(GgufBytes()
              .counts(0, 1)
              .key("k", GgufType::kArray)
              .number<uint32_t>(4)
              .number<uint64_t>(1ull << 62),
          "claims");
  refused(GgufBytes()
              .counts(0, 2)
              .key("k", GgufType::kU32)
              .number(1)
              .key("k", GgufType::kU32)
              .number(1),
          "twice");
  GgufBytes deep;
  deep.counts(0, 1).key("k", GgufType::kArray);
  for (int i = 0; i < 9; ++i) deep.number<uint32_t>(9).number<uint64_t>(1);
  refused(deep.data(64), "nests arrays too deep");
  GgufBytes odd;
  odd.counts(0, 1).key("general.alignment", GgufType::kU32).number<uint32_t>(7);
  refused(odd, "general.alignment");
  refused(GgufBytes().counts(1, 0).tensor("w", {64}, 0, 0).data(64), "lies at bytes 0 to 256");
  refused(GgufBytes().counts(1, 0).tensor("w", {1ull << 40, 1ull << 40}, 0, 0).data(64),
          "exceeds 64 bits");
  refused(GgufBytes().counts(1, 0).tensor("w", {33}, 8, 0).data(64), "whole blocks");
  refused(GgufBytes().counts(1, 0).tensor("w", {16}, 0, 8).data(128), "alignment");
  refused(GgufBytes().counts(1, 0).tensor("w", {256}, 29, 0).data(128), "IQ1_M");
  refused(GgufBytes().counts(1, 0).tensor("w", {128}, 23, 0).data(68),
          "not whole blocks of IQ4_XS");
  refused(GgufBytes().counts(1, 0).tensor("w", {48}, 39, 0).data(34), "not whole blocks of MXFP4");
  refused(GgufBytes().counts(1, 0).tensor("w", {256}, 10, 0).data(83), "bytes 0 to 84");
  refused(GgufBytes().counts(1, 0).tensor("w", {256}, 99, 0).data(128), "unknown type 99");
  refused(GgufBytes().counts(1, 0).tensor("w", {1, 1, 1, 1, 1}, 0, 0).data(128), "5 dimensions");
  refused(GgufBytes().counts(2, 0).tensor("w", {16}, 0, 0).tensor("w", {16}, 0, 64).data(128),
          "twice");
  refused(GgufBytes().counts(2, 0).tensor("v", {16}, 0, 0).tensor("w", {16}, 0, 32).data(128),
          "overlap");
}

TEST_CASE("a GGUF file cut short anywhere is refused") {
  GgufBytes bytes;
  bytes.counts(1, 2).key("k", GgufType::kString).text("some text").key("n", GgufType::kArray);
  bytes.number<uint32_t>(4).number<uint64_t>(3).number(1).number(2).number(3);
  bytes.tensor("w", {32}, 0, 0).data(128);
  const auto path = bytes.write();
  const auto size = std::filesystem::file_size(path);
  CHECK_NOTHROW(GgufFile(path));
  for (uintmax_t length = size - 1; length > 0; --length) {
    std::filesystem::resize_file(path, length);
    INFO(length);
    CHECK_THROWS_AS(GgufFile(path), ModelError);
  }
}

TEST_CASE("blocks of every type dequantize to the recorded values") {
  const auto folder = tests::fixtures_dir();
  if (folder.empty()) MULCIBER_SKIP("no reference data: set MULCIBER_FIXTURES");
  const SafetensorsFile file(folder / "gguf/blocks.safetensors");
  std::ifstream stream(folder / "gguf/blocks.json");
  size_t compared = 0;
  const nlohmann::json index = nlohmann::json::parse(stream);
  for (const auto& entry : index["types"]) {
    const std::string name = entry["type"];
    for (const auto& [raw_name, float_name] :
         {std::pair("random_raw", "random_float"), std::pair("quantized_raw", "quantized_float"),
          std::pair("file_raw", "file_float")}) {
      const CheckpointTensor* raw = file.find(name + "/" + raw_name);
      const CheckpointTensor* expected = file.find(name + "/" + float_name);
      if (!raw || !expected) continue;
      for (int type = 0; type <= static_cast<int>(CheckpointType::kMXFP4); ++type) {
        const auto checkpoint_type = static_cast<CheckpointType>(type);
        if (name_of(checkpoint_type) != name || !has_float_values(checkpoint_type)) continue;
        CHECK(block_elements(checkpoint_type) == entry["block_elements"].get<size_t>());
        CHECK(block_bytes(checkpoint_type) == entry["block_bytes"].get<size_t>());
        const CheckpointTensor blocks{name, checkpoint_type, {}, raw->bytes};
        const std::vector<float> got = read_floats(blocks, 0, blocks.elements());
        const std::vector<float> want = read_floats(*expected, 0, expected->elements());
        REQUIRE(got.size() == want.size());
        size_t different = 0;
        for (size_t i = 0; i < got.size(); ++i) {
          // Another order of the factors may differ by a rounding.
          const bool same = got[i] == want[i] || (std::isnan(got[i]) && std::isnan(want[i])) ||
                            std::abs(got[i] - want[i]) <= 3e-7f * std::abs(want[i]) + 1e-30f;
          different += !same;
        }
        INFO(name << " " << raw_name);
        CHECK(different == 0);
        ++compared;
      }
    }
  }
  CHECK(compared >= 24);
}
