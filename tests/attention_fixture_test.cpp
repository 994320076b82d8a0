// Attention against recorded values of an independent float64 implementation.
#include <cmath>
#include <cstring>
#include <fstream>

#include <nlohmann/json.hpp>

#include "models/safetensors.h"
#include "runtime/ops/attention.h"
#include "tests/catch.h"
#include "tests/device.h"
#include "tests/support.h"

using namespace mulciber;
using nlohmann::json;

namespace {

/// A tensor of the file as doubles, and its shape.
struct Values {
  std::vector<uint64_t> shape;
  std::vector<double> values;
};

Values read(const SafetensorsFile& file, const std::string& name) {
  const CheckpointTensor* tensor = file.find(name);
  REQUIRE(tensor != nullptr);
  Values result{tensor->shape, std::vector<double>(tensor->elements())};
  const bool wide = tensor->type == CheckpointType::kF64;
  REQUIRE((wide || tensor->type == CheckpointType::kF32));
  for (size_t i = 0; i < result.values.size(); ++i) {
    if (wide) {
      std::memcpy(&result.values[i], tensor->bytes.data() + 8 * i, 8);
    } else {
      float value;
      std::memcpy(&value, tensor->bytes.data() + 4 * i, 4);
      result.values[i] = value;
    }
  }
  return result;
}

/// (batch, heads, length, size) into columns from `first` of (batch, length, columns).
void place(const Values& from, std::vector<float>& to, uint64_t columns, uint64_t first) {
  const uint64_t heads = from.shape[1], length = from.shape[2], size = from.shape[3];
  for (uint64_t i = 0; i < from.values.size(); ++i) {
    const uint64_t d = i % size, position = i / size % length, head = i / size / length % heads,
                   row = i / size / length / heads;
    to[(row * length + position) * columns + first + head * size + d] =
        static_cast<float>(from.values[i]);
  }
}

/// A member that a case may lack; null then. (Reading an absent member of a const object is undefined.)
const json& field(const json& entry, const char* name) {
  static const json kNull;
  const auto found = entry.find(name);
  return found == entry.end() ? kNull : *found;
}

/// Whether the op has the masks, scores and extras of a case.
bool served(const json& entry) {
  if (!entry.contains("mask") || !field(entry, "bias").is_null() || !field(entry, "softcap").is_null())
    return false;
  if (!field(entry, "extra").empty()) return false;
  const std::string score = entry["score"], mask = entry["mask"];
  if (score != "scaled_dot" && score != "dot") return false;
  const int64_t offset = (field(entry, "mask_params").is_object() ? field(entry, "mask_params").value("q_offset", int64_t{0}) : 0);
  const int64_t aligned = entry["kv_len"].get<int64_t>() - entry["q_len"].get<int64_t>();
  if (mask == "none" || mask == "padding") return true;
  if (mask == "causal") return offset == aligned;
  // Positions count from the end of the keys that are there, so right-padded keys would move them.
  if (mask == "causal_padding") {
    if (offset != aligned) return false;
    for (int64_t length : field(entry, "mask_params")["lengths"]) {
      if (length != entry["kv_len"].get<int64_t>()) return false;
    }
    return true;
  }
  return false;
}

/// Root-mean-square error over the root mean square of what is expected.
double relative_error(const std::vector<float>& got, const std::vector<double>& expected) {
  REQUIRE(got.size() == expected.size());
  double error = 0, square = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    error += (got[i] - expected[i]) * (got[i] - expected[i]);
    square += expected[i] * expected[i];
  }
  return square == 0 ? std::sqrt(error) : std::sqrt(error / square);
}

template <typename T>
Buffer to_device(Device& device, const std::vector<T>& values) {
  Buffer buffer = device.memory().allocate(values.size() * sizeof(T), MemoryUse::kDevice);
  upload(device, buffer.view(), std::as_bytes(std::span(values)));
  return buffer;
}

}  // namespace

TEST_CASE("attention meets the recorded values") {
  const auto folder = tests::fixtures_dir();
  if (folder.empty()) MULCIBER_SKIP("no reference data: set MULCIBER_FIXTURES");
  std::ifstream stream(folder / "attention/attention.json");
  const json index = json::parse(stream);
  const SafetensorsFile file(folder / "attention/attention.safetensors");
  Device& device = tests::shared_device();

  size_t ran = 0;
  for (const json& entry : index["cases"]) {
    if (!served(entry)) continue;
    const std::string name = entry["name"];
    DYNAMIC_SECTION(name) {
      const uint64_t batch = entry["batch"], q_len = entry["q_len"], kv_len = entry["kv_len"];
      AttentionOptions options;
      options.heads = entry["heads"];
      options.kv_heads = entry["kv_heads"];
      options.head_size = entry["d_q"];
      options.value_size = entry["d_v"];
      const double usual = entry["score"] == "dot" ? 1 : 1 / std::sqrt(double(options.head_size));
      options.scale = static_cast<float>(field(entry, "score_params").is_object() ? field(entry, "score_params").value("scale", usual) : usual);
      options.causal = entry["mask"].get<std::string>().starts_with("causal");

      const uint64_t q_columns = options.heads * options.head_size;
      const uint64_t v_first = options.kv_heads * options.head_size;
      const uint64_t kv_columns = v_first + options.kv_heads * options.value_size;
      std::vector<float> q(batch * q_len * q_columns), kv(batch * kv_len * kv_columns);
      place(read(file, name + "/q"), q, q_columns, 0);
      place(read(file, name + "/k"), kv, kv_columns, 0);
      place(read(file, name + "/v"), kv, kv_columns, v_first);
      std::vector<uint32_t> control(batch, static_cast<uint32_t>(kv_len));
      if (field(entry, "mask_params").contains("lengths")) {
        for (uint64_t row = 0; row < batch; ++row)
          control[row] = field(entry, "mask_params")["lengths"][row];
      }

      const Buffer q_buffer = to_device(device, q), kv_buffer = to_device(device, kv),
                   control_buffer = to_device(device, control);
      options.control = AttentionControl{.tensor = control_buffer.tensor({batch}, DataType::kU32),
                                         .key_counts = 0};
      const HeadColumns q_part{q_buffer.tensor({batch, q_len, q_columns}, DataType::kF32), 0};
      const Tensor kv_tensor = kv_buffer.tensor({batch, kv_len, kv_columns}, DataType::kF32);
      const HeadColumns k{kv_tensor, 0}, v{kv_tensor, static_cast<uint32_t>(v_first)};

      ProgramBuilder builder(device, name);
      const Tensor result = attention(builder, q_part, k, v, options);
      const Tensor map = attention_map(builder, q_part, k, options);
      builder.keep(result);
      builder.keep(map);
      Program program = builder.build();
      program.run();

      // The result is (batch, q_len, heads * size); the recorded one has heads outside.
      const Values out = read(file, name + "/out");
      std::vector<float> expected(out.values.size());
      place(out, expected, options.heads * options.value_size, 0);
      const auto got = download_as<float>(device, program.view(result));
      CHECK(relative_error(got, {expected.begin(), expected.end()}) < 1e-5);
      if (entry["tensors"].contains("weights")) {  // the larger cases are recorded without
        const auto weights = download_as<float>(device, program.view(map));
        CHECK(relative_error(weights, read(file, name + "/weights").values) < 1e-5);
      }
    }
    ++ran;
  }
  CHECK(ran > 10);
}
