// Adapters of tests/data/lora, whole and broken, and the models that they were made for.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "checkpoints/safetensors.h"
#include "checkpoints/tensor_values.h"
#include "tests/model_error.h"

namespace mulciber::tests {

inline std::filesystem::path lora_dir() { return data_dir() / "lora"; }
inline std::filesystem::path tiny_model(const std::string& family) {
  return data_dir() / "gguf_families" / family;
}

/// A tensor of a safetensors file that a test writes.
struct MadeTensor {
  std::string type;  // "F32", ...
  std::vector<uint64_t> shape;
  std::string bytes;
};
using MadeTensors = std::map<std::string, MadeTensor>;

inline MadeTensors read_tensors(const std::filesystem::path& path) {
  const SafetensorsFile file(path);
  MadeTensors tensors;
  for (const CheckpointTensor& tensor : file.tensors())
    tensors[tensor.name] = {
        name_of(tensor.type),
        tensor.shape,
        {reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size()}};
  return tensors;
}

inline std::string tensor_bytes(const MadeTensors& tensors) {
  nlohmann::json header = nlohmann::json::object();
  std::string data;
  for (const auto& [name, tensor] : tensors) {
    header[name] = {{"dtype", tensor.type},
                    {"shape", tensor.shape},
                    {"data_offsets", {data.size(), data.size() + tensor.bytes.size()}}};
    data += tensor.bytes;
  }
  const std::string text = header.dump();
  std::string bytes(8, '\0');
  const uint64_t size = text.size();
  std::memcpy(bytes.data(), &size, sizeof size);
  return bytes + text + data;
}

/// The largest difference of logits, divided by the largest expected logit.
inline double difference(const std::vector<double>& found, const std::vector<double>& expected) {
  if (found.size() != expected.size()) throw std::runtime_error("logits differ in number");
  double worst = 0, largest = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    worst = std::max(worst, std::abs(found[i] - expected[i]));
    largest = std::max(largest, std::abs(expected[i]));
  }
  return worst / largest;
}

/// Writes the folder of a model with all of its tensors in f32.
inline void write_in_f32(const std::filesystem::path& from, const std::filesystem::path& to) {
  const SafetensorsFile file(from / "model.safetensors");
  MadeTensors wide;
  for (const CheckpointTensor& tensor : file.tensors()) {
    const std::vector<float> values = read_floats(tensor, 0, tensor.elements());
    wide[tensor.name] = {
        "F32",
        tensor.shape,
        {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)}};
  }
  write_file(to / "model.safetensors", tensor_bytes(wide));
  for (const char* name : {"config.json", "tokenizer.json"})
    write_file(to / name, read_file(from / name));
}

/// Writes a changed copy of an adapter's folder.
inline std::filesystem::path changed_adapter(
    const std::filesystem::path& folder, const std::string& from,
    const std::function<void(nlohmann::json& config, MadeTensors& tensors)>& change) {
  nlohmann::json config =
      nlohmann::json::parse(read_file(lora_dir() / from / "adapter_config.json"));
  MadeTensors tensors = read_tensors(lora_dir() / from / "adapter_model.safetensors");
  change(config, tensors);
  write_file(folder / "adapter_config.json", config.dump());
  write_file(folder / "adapter_model.safetensors", tensor_bytes(tensors));
  return folder;
}

}  // namespace mulciber::tests
