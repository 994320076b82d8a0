// Whole models in the types that quantizers write, against logits in double precision from their
// dequantized weights (tools/fixtures/weight_types.py).
#include <cmath>

#include "checkpoints/checkpoint.h"
#include "checkpoints/safetensors.h"
#include "checkpoints/scaled_matrix.h"
#include "checkpoints/tensor_values.h"
#include "models/generation/decoder_model.h"
#include "tests/catch.h"
#include "tests/device.h"
#include "tests/model_error.h"
#include "tests/reference_values.h"
#include "tests/support.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

fs::path weight_types_folder() { return data_dir() / "weight_types"; }

struct Entry {
  std::string name, dtype;
  std::vector<uint64_t> shape;
  uint32_t word = 0;  // repeated to fill the data
};

/// Writes a folder with these tensors and this quantization_config.
void write_model(const fs::path& path, const std::vector<Entry>& entries,
                 const std::string& quantization) {
  std::string header = "{", data;
  for (const Entry& entry : entries) {
    const uint64_t size = entry.dtype == "F8_E4M3" ? 1 : entry.dtype == "F16" ? 2 : 4;
    uint64_t bytes = size;
    std::string shape;
    for (const uint64_t extent : entry.shape) {
      bytes *= extent;
      shape += (shape.empty() ? "" : ",") + std::to_string(extent);
    }
    const size_t begin = data.size();
    for (uint64_t i = 0; i < bytes; ++i) data += static_cast<char>(entry.word >> (i % 4 * 8));
    header += (header.size() > 1 ? ",\"" : "\"") + entry.name + R"(":{"dtype":")" + entry.dtype +
              R"(","shape":[)" + shape + R"(],"data_offsets":[)" + std::to_string(begin) + "," +
              std::to_string(data.size()) + "]}";
  }
  header += "}";
  const uint64_t length = header.size();
  std::string file(reinterpret_cast<const char*>(&length), 8);
  write_file(path / "model.safetensors", file + header + data);
  write_file(path / "config.json",
             R"({"model_type":"llama","quantization_config":)" + quantization + "}");
}

/// The error message for such a folder, about its files or its configuration; "" when there is
/// none.
std::string weights_refusal(const std::vector<Entry>& entries, const std::string& quantization) {
  const TemporaryFolder temporary;
  write_model(temporary.path(), entries, quantization);
  const auto message = model_error([&] {
    const Checkpoint checkpoint(temporary.path());
    read_quantization(checkpoint.config(), "config.json");
  });
  return message.value_or("");
}

const char* const kGptq = R"({"quant_method":"gptq","bits":4,"group_size":32})";
const char* const kAwq = R"({"quant_method":"awq","bits":4,"group_size":64})";
const char* const kFp8 = R"({"quant_method":"fp8","weight_block_size":[128,128]})";

std::vector<float> values_of(const fs::path& path) {
  const Checkpoint checkpoint(path);
  const CheckpointTensor* weight = checkpoint.find("w.weight");
  REQUIRE(weight);
  CHECK(weight->elements() == weight->shape[0] * weight->shape[1]);
  return read_floats(*weight, 0, weight->elements());
}

}  // namespace

TEST_CASE("Models in few bits meet the values of their dequantized weights") {
  const std::string name = GENERATE("blocks", "fp8", "gptq", "gptq_ordered", "gptq_act_order",
                                    "awq", "experts", "grids");
  INFO(name);
  const bool gguf = fs::exists(weight_types_folder() / (name + ".gguf"));
  const Checkpoint checkpoint(weight_types_folder() / (gguf ? name + ".gguf" : name));
  DecoderModel model(shared_device(), checkpoint, read_decoder_config(checkpoint), {});
  const SafetensorsFile expected(weight_types_folder() / "expected.safetensors");
  const std::vector<double> ids = read_values(*expected.find(name + "/input_ids")),
                            logits = read_values(*expected.find(name + "/logits"));
  const std::vector<std::string> wanted = {"logits"};
  const std::vector<double> found =
      model.forward({{"input_ids", {{1, ids.size()}, ids}}}, wanted).at("logits").values;
  REQUIRE(found.size() == logits.size());
  double worst = 0;
  for (size_t i = 0; i < logits.size(); ++i)
    worst = std::max(worst, std::abs(found[i] - logits[i]));
  INFO("largest difference " << worst);
  // Where matrices of one product have different orders of columns they become f16, which rounds
  // them.
  CHECK(worst < (name == "gptq_ordered" ? 1e-2 : 1e-4));
}

TEST_CASE(
    "Columns in the order of their activations stay in blocks where a product has one order") {
  const auto bytes = [](const char* name, const std::vector<std::string>& parts,
                        MatrixStorage storage = MatrixStorage::kAsInFile) {
    const Checkpoint checkpoint(weight_types_folder() / name);
    WeightSpec spec{"w", WeightRole::kMatrix, {}, {}};
    spec.any_column_order = true;
    uint64_t rows = 0;
    for (const std::string& part : parts) {
      const std::string of = "model.layers.0." + part + "_proj.weight";
      const std::vector<uint64_t>& shape = checkpoint.find(of)->shape;
      rows += shape[0];
      spec.sources.push_back({{of}, {shape[0], shape[1]}});
      spec.shape = {rows, shape[1]};
    }
    return weight_bytes({spec}, checkpoint, "test", storage);
  };
  const std::vector<std::string> qkv = {"self_attn.q", "self_attn.k", "self_attn.v"};
  const uint64_t rows = bytes("gptq_act_order", qkv, MatrixStorage::kF16) / (64 * 2);
  // The order takes one word for each of 64 columns.
  CHECK(bytes("gptq_act_order", qkv) == rows * row_bytes(DataType::kInt4_32, 64) + 256);
  CHECK(bytes("gptq_ordered", qkv) == rows * 64 * 2);
  CHECK(bytes("gptq_ordered", {"mlp.down"}) == 64 * row_bytes(DataType::kInt4_32, 64) + 256);
}

TEST_CASE("Columns in another order go with 16-bit and fast activations, and are counted") {
  const Checkpoint checkpoint(weight_types_folder() / "gptq_act_order");
  const DecoderConfig config = read_decoder_config(checkpoint);
  const SafetensorsFile expected(weight_types_folder() / "expected.safetensors");
  const std::vector<double> ids = read_values(*expected.find("gptq_act_order/input_ids")),
                            logits = read_values(*expected.find("gptq_act_order/logits"));
  const std::vector<std::string> wanted = {"logits"};
  ModelOptions halves, fast;
  halves.activations = DataType::kF16;
  fast.fast_activations = true;
  for (const ModelOptions& options : {halves, fast}) {
    DecoderModel model(shared_device(), checkpoint, config, options);
    const std::vector<double> found =
        model.forward({{"input_ids", {{1, ids.size()}, ids}}}, wanted).at("logits").values;
    double worst = 0;
    for (size_t i = 0; i < logits.size(); ++i)
      worst = std::max(worst, std::abs(found.at(i) - logits[i]));
    // The logits' standard deviation is 2.4.
    INFO("largest difference " << worst);
    CHECK(worst < (options.fast_activations ? 1e-4 : 5e-2));
  }
}

TEST_CASE("Experts stay in the blocks of their file, but for those of several types") {
  const Checkpoint checkpoint(weight_types_folder() / "experts.gguf");
  const WeightSource gate = {{"blk.0.ffn_gate_exps.weight"}, {4, 96, 64}},
                     down = {{"blk.0.ffn_down_exps.weight"}, {4, 64, 96}};
  const auto bytes = [&](const WeightSpec& spec) {
    return weight_bytes({spec}, checkpoint, "test", MatrixStorage::kAsInFile);
  };
  CHECK(bytes({"w", WeightRole::kExperts, {4, 96, 64}, {gate}}) ==
        uint64_t{4} * 96 * row_bytes(DataType::kMXFP4, 64));
  CHECK(bytes({"w", WeightRole::kExperts, {2, 4, 96, 64}, {gate, down}}) ==
        uint64_t{2} * 4 * 96 * 64 * 2);
}

TEST_CASE("The tensors of a quantized matrix are its values together") {
  const TemporaryFolder temporary;
  const fs::path& path = temporary.path();
  // The scales are 0.5. GPTQ stores zero points less one, so 15 means 0 (16 in four bits); in v2,
  // 15 means 15.
  const std::vector<Entry> gptq = {{"w.qweight", "I32", {8, 8}, 0x76543210},
                                   {"w.qzeros", "I32", {2, 1}, 0x0000000f},
                                   {"w.scales", "F16", {2, 8}, 0x38003800}};
  write_model(path, gptq, kGptq);
  std::vector<float> values = values_of(path);
  REQUIRE(values.size() == 8 * 64);
  CHECK(values[0] == 0);  // from the row whose zero point is 0
  CHECK(values[7] == 3.5f);
  CHECK(values[64 + 7] == 3.0f);  // from one whose zero point is 1
  write_model(path, gptq,
              R"({"quant_method":"gptq","bits":4,"group_size":32,"checkpoint_format":"gptq_v2"})");
  values = values_of(path);
  CHECK(values[0] == -7.5f);
  CHECK(values[64 + 7] == 3.5f);
  // In AWQ, number 1 of a word is row 2's, number 4 is row 1's.
  write_model(path,
              {{"w.qweight", "I32", {64, 1}, 0x76543210},
               {"w.qzeros", "I32", {1, 1}, 0x00000010},
               {"w.scales", "F16", {1, 8}, 0x38003800}},
              kAwq);
  values = values_of(path);
  REQUIRE(values.size() == 8 * 64);
  CHECK(values[0] == 0);
  CHECK(values[64 + 5] == 2.0f);
  CHECK(values[2 * 64] == 0);  // 1 less its zero point of 1
  // E4M3: 1.0, -2.0, the smallest and the largest; the matrix has a scale of 3.0 in f32.
  write_model(
      path,
      {{"w.weight", "F8_E4M3", {2, 32}, 0x7e01c038}, {"w.weight_scale", "F32", {1}, 0x40400000}},
      kFp8);
  values = values_of(path);
  CHECK(std::vector(values.begin(), values.begin() + 4) ==
        std::vector<float>{3, -6, 3 * 0x1p-9f, 3 * 448.0f});
}

TEST_CASE("Tensors of a quantized matrix that do not fit each other are refused") {
  const Entry numbers{"w.qweight", "I32", {8, 16}}, zeros{"w.qzeros", "I32", {2, 2}},
      scales{"w.scales", "F16", {2, 16}}, fp8{"w.weight", "F8_E4M3", {192, 160}};
  CHECK(weights_refusal({numbers, zeros, scales}, kGptq).empty());
  CHECK_THAT(weights_refusal({numbers, scales}, kGptq), ContainsSubstring("'w.qzeros' is missing"));
  CHECK_THAT(weights_refusal({numbers, zeros, {"w.scales", "F16", {2, 8}}}, kGptq),
             ContainsSubstring("'w.scales' has shape [2, 8], its matrix needs [2, 16]"));
  CHECK_THAT(weights_refusal({numbers, zeros, {"w.scales", "F32", {2, 16}}}, kGptq),
             ContainsSubstring("'w.scales' is stored as F32, not F16"));
  CHECK_THAT(weights_refusal({{"w.qweight", "I32", {6, 16}}, zeros, scales}, kGptq),
             ContainsSubstring("16 rows of 48 columns"));
  CHECK(weights_refusal({numbers, zeros, scales, {"w.g_idx", "I32", {64}, 1}}, kGptq).empty());
  for (const uint32_t group : {2u, 0xffffffffu})
    CHECK_THAT(weights_refusal({numbers, zeros, scales, {"w.g_idx", "I32", {64}, group}}, kGptq),
               ContainsSubstring("'w.g_idx' puts column 0 into group"));
  CHECK_THAT(weights_refusal({numbers, zeros, scales, {"w.g_idx", "I32", {32}}}, kGptq),
             ContainsSubstring("has shape [32], its matrix needs [64]"));
  CHECK_THAT(weights_refusal({numbers, zeros, scales},
                             R"({"quant_method":"gptq","bits":3,"group_size":32})"),
             ContainsSubstring("is not 4"));
  CHECK_THAT(weights_refusal({numbers, zeros, scales},
                             R"({"quant_method":"gptq","bits":4,"group_size":48})"),
             ContainsSubstring("is 48, not a multiple of 32"));
  CHECK_THAT(weights_refusal({}, R"({"quant_method":"bitsandbytes"})"),
             ContainsSubstring("'bitsandbytes'"));
  CHECK_THAT(
      weights_refusal({}, R"({"quant_method":"awq","bits":4,"group_size":64,"version":"gemv"})"),
      ContainsSubstring("is not gemm"));
  CHECK_THAT(weights_refusal({{"w.qweight", "I32", {8, 16}}, zeros, scales}, kAwq),
             ContainsSubstring("128 rows of 8 columns"));
  CHECK(weights_refusal({fp8, {"w.weight_scale_inv", "F32", {2, 2}}}, kFp8).empty());
  CHECK(weights_refusal({fp8, {"w.weight_scale", "F32", {192, 1}}}, kFp8).empty());
  CHECK_THAT(weights_refusal({fp8, {"w.weight_scale_inv", "F32", {2, 3}}}, kFp8),
             ContainsSubstring("'w.weight_scale_inv' has shape [2, 3]"));
  CHECK_THAT(weights_refusal({fp8, {"w.weight_scale", "I32", {1}}}, kFp8),
             ContainsSubstring("is stored as I32"));
  CHECK_THAT(weights_refusal({fp8}, R"({"quant_method":"fp8","weight_block_size":[128,64]})"),
             ContainsSubstring("multiple of 128"));
}
