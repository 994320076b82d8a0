// Adapters of every product of a model, made at run time, and the logits that they give.
#pragma once

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "models/generation/decoder_architecture.h"
#include "models/generation/decoder_model.h"
#include "tests/catch.h"
#include "tests/device.h"
#include "tests/gguf_bytes.h"
#include "tests/lora_files.h"

namespace mulciber::tests {

constexpr uint32_t kMadeRank = 3;

/// Names of the file's matrices that adapters may change, without ".weight", and whether the file
/// has each transposed. `experts`: includes the matrices that each expert has.
inline std::map<std::string, bool> targets(const Checkpoint& checkpoint,
                                           const DecoderConfig& config, bool experts = false) {
  std::map<std::string, bool> found;
  for (const WeightSpec& spec : decoder_weight_table(config)) {
    const bool matrices = spec.role == WeightRole::kMatrix && spec.shape.rank() == 2;
    const bool single = spec.role == WeightRole::kExperts && spec.sources.front().shape.rank() == 2;
    if ((!matrices && !(experts && single)) || !takes_adapters(spec.name)) continue;
    for (const WeightSource& source : spec.sources) {
      const auto name = std::ranges::find_if(
          source.names, [&](const std::string& one) { return checkpoint.find(one) != nullptr; });
      REQUIRE(name != source.names.end());
      found[name->substr(0, name->rfind(".weight"))] = source.form == SourceForm::kTransposed;
    }
  }
  return found;
}

inline std::string bytes_of(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

/// Writes an adapter of all targets to `adapter`, and the model with the adapter merged to
/// `changed`.
inline void write_adapted(const Checkpoint& checkpoint, const std::map<std::string, bool>& targets,
                          const std::filesystem::path& adapter,
                          const std::filesystem::path& changed) {
  const std::filesystem::path model = checkpoint.path();
  MadeTensors weights, matrices;
  for (const CheckpointTensor* tensor : checkpoint.tensors()) {
    std::vector<std::byte> scratch;
    const auto bytes = tensor->read(0, tensor->bytes.size(), scratch);
    weights[tensor->name] = {name_of(tensor->type),
                             tensor->shape,
                             {reinterpret_cast<const char*>(bytes.data()), bytes.size()}};
  }
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  const auto draw = [&](uint64_t count, double size) {
    std::vector<float> values(count);
    for (float& value : values) value = static_cast<float>(size) * normal(random);
    return values;
  };
  for (const auto& [module, transposed] : targets) {
    const CheckpointTensor& matrix = checkpoint.at(module + ".weight");
    const uint64_t rows = matrix.shape[transposed ? 1 : 0],
                   columns = matrix.shape[transposed ? 0 : 1];
    std::vector<float> wide = read_floats(matrix, 0, matrix.elements());
    double sum = 0;
    for (const float value : wide) sum += double(value) * value;
    const double size = std::sqrt(sum / static_cast<double>(wide.size()));
    const std::vector<float> a = draw(kMadeRank * columns, 1), b = draw(rows * kMadeRank, size / 4);
    for (uint64_t row = 0; row < rows; ++row) {
      for (uint64_t column = 0; column < columns; ++column) {
        float& value = wide[transposed ? column * rows + row : row * columns + column];
        double changed_value = value;
        for (uint64_t i = 0; i < kMadeRank; ++i)
          changed_value += double(b[row * kMadeRank + i]) * a[i * columns + column];
        value = static_cast<float>(changed_value);
      }
    }
    weights[matrix.name] = {"F32", matrix.shape, bytes_of(wide)};
    const std::string name = "base_model.model." + module;
    matrices[name + ".lora_A.weight"] = {"F32", {kMadeRank, columns}, bytes_of(a)};
    matrices[name + ".lora_B.weight"] = {"F32", {rows, kMadeRank}, bytes_of(b)};
  }
  write_file(changed / "model.safetensors", tensor_bytes(weights));
  write_file(changed / "config.json", read_file(model / "config.json"));
  write_file(
      adapter / "adapter_config.json",
      nlohmann::json({{"peft_type", "LORA"}, {"r", kMadeRank}, {"lora_alpha", kMadeRank}}).dump());
  write_file(adapter / "adapter_model.safetensors", tensor_bytes(matrices));
}

inline std::vector<double> logits(const std::filesystem::path& model, ModelOptions options) {
  const std::vector<double> ids = {5, 17, 3, 31, 11, 2, 9, 33, 21};
  const Checkpoint checkpoint(model);
  DecoderModel loaded(shared_device(), checkpoint, read_decoder_config(checkpoint), options);
  const std::vector<std::string> wanted = {"logits"};
  return loaded.forward({{"input_ids", {{1, ids.size()}, ids}}}, wanted).at("logits").values;
}

/// A matrix of a GGUF adapter, (rows, columns); with experts, one after another.
struct AdapterMatrix {
  std::string name;
  uint64_t rows = 0, columns = 0;
  std::vector<float> values;
  uint64_t experts = 0;
};

/// Writes a GGUF adapter as llama.cpp's converter does.
inline void write_gguf_adapter(const std::string& architecture, float alpha,
                               const std::vector<AdapterMatrix>& matrices,
                               const std::filesystem::path& to) {
  GgufBytes bytes;
  bytes.counts(matrices.size(), 4);
  bytes.key("general.type", GgufType::kString).text("adapter");
  bytes.key("adapter.type", GgufType::kString).text("lora");
  bytes.key("general.architecture", GgufType::kString).text(architecture);
  bytes.key("adapter.lora.alpha", GgufType::kF32).number(alpha);
  uint64_t offset = 0;
  for (const AdapterMatrix& matrix : matrices) {
    std::vector<uint64_t> inner_first = {matrix.columns, matrix.rows};
    if (matrix.experts > 0) inner_first.push_back(matrix.experts);
    bytes.tensor(matrix.name, inner_first, 0, offset);
    offset += (matrix.values.size() * sizeof(float) + 31) / 32 * 32;
  }
  for (const AdapterMatrix& matrix : matrices) {
    const std::string values = bytes_of(matrix.values);
    bytes.align().raw(values.data(), values.size());
  }
  std::filesystem::copy_file(bytes.write(), to);
}

}  // namespace mulciber::tests
