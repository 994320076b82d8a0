// Adapters of experts in every form that files have. The formats' conversions of A and B are
// written here a second time, independent of the library's readers.
#pragma once

#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/lora_families.h"

namespace mulciber::tests {

/// A and B of a matrix that each expert has.
struct ExpertMatrices {
  uint64_t rank = 0, rows = 0, columns = 0;
  /// The matrices of each expert: down (rank, columns), up (rows, rank).
  std::vector<std::vector<float>> down, up;
};
struct OfLayer {
  ExpertMatrices gate, up, down;
};

inline MadeTensor made(std::vector<uint64_t> shape, const std::vector<float>& values) {
  return {"F32", std::move(shape), bytes_of(values)};
}

/// Writes A and B in PEFT's layout for a parameter. `turned`: the layout before release 0.19 for a
/// parameter of shape (experts, rows, columns).
inline void put_parameter(MadeTensors& tensors, const std::string& module, const ExpertMatrices& of,
                          bool turned) {
  const uint64_t E = of.down.size(), R = of.rank, wide = turned ? of.rows : of.columns,
                 high = turned ? of.columns : of.rows;
  std::vector<float> a(E * R * wide), b(high * R * E);
  for (uint64_t e = 0; e < E; ++e) {
    for (uint64_t i = 0; i < R; ++i) {
      const auto of_column = [&](uint64_t c) { return of.down[e][i * of.columns + c]; };
      const auto of_row = [&](uint64_t r) { return of.up[e][r * R + i]; };
      for (uint64_t c = 0; c < wide; ++c)
        a[(e * R + i) * wide + c] = turned ? of_row(c) : of_column(c);
      for (uint64_t r = 0; r < high; ++r)
        b[r * R * E + i * E + e] = turned ? of_column(r) : of_row(r);
    }
  }
  tensors[module + ".lora_A.weight"] = made({E * R, wide}, a);
  tensors[module + ".lora_B.weight"] = made({high, R * E}, b);
}

/// Reads such A and B back, not turned.
inline ExpertMatrices parameter(const MadeTensors& tensors, const std::string& module,
                                uint64_t experts) {
  const auto read = [&](const char* matrix) {
    const MadeTensor& tensor = tensors.at(module + ".lora_" + matrix + ".weight");
    std::vector<float> values(tensor.bytes.size() / sizeof(float));
    std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
    return std::pair(tensor.shape, values);
  };
  const auto [a_shape, a] = read("A");
  const auto [b_shape, b] = read("B");
  ExpertMatrices of = {a_shape[0] / experts, b_shape[0], a_shape[1], {}, {}};
  for (uint64_t e = 0; e < experts; ++e) {
    const auto first = a.begin() + static_cast<std::ptrdiff_t>(e * of.rank * of.columns);
    of.down.emplace_back(first, first + static_cast<std::ptrdiff_t>(of.rank * of.columns));
    std::vector<float>& up = of.up.emplace_back();
    for (uint64_t row = 0; row < of.rows; ++row)
      for (uint64_t i = 0; i < of.rank; ++i)
        up.push_back(b[row * of.rank * experts + i * experts + e]);
  }
  return of;
}

/// Every `step`-th row of B from `first` on, `count` of them.
inline ExpertMatrices rows_of(ExpertMatrices of, uint64_t first, uint64_t step, uint64_t count) {
  for (std::vector<float>& up : of.up) {
    std::vector<float> chosen;
    for (uint64_t row = 0; row < count; ++row) {
      const auto from = up.begin() + static_cast<std::ptrdiff_t>((first + row * step) * of.rank);
      chosen.insert(chosen.end(), from, from + static_cast<std::ptrdiff_t>(of.rank));
    }
    up = chosen;
  }
  of.rows = count;
  return of;
}

/// One pair for the fused product of gate and up, as PEFT fuses adapters of experts that had
/// matrices of their own: A's one below the other, B's in blocks.
inline ExpertMatrices fused(const ExpertMatrices& gate, const ExpertMatrices& up) {
  ExpertMatrices of = {2 * gate.rank, 2 * gate.rows, gate.columns, {}, {}};
  for (size_t e = 0; e < gate.down.size(); ++e) {
    std::vector<float>& down = of.down.emplace_back(gate.down[e]);
    down.insert(down.end(), up.down[e].begin(), up.down[e].end());
    std::vector<float>& rows = of.up.emplace_back(of.rows * of.rank);
    for (uint64_t row = 0; row < gate.rows; ++row)
      for (uint64_t i = 0; i < gate.rank; ++i) {
        rows[row * of.rank + i] = gate.up[e][row * gate.rank + i];
        rows[(gate.rows + row) * of.rank + gate.rank + i] = up.up[e][row * gate.rank + i];
      }
  }
  return of;
}

using Layers = std::map<uint32_t, OfLayer>;

constexpr const char* kPrefix = "base_model.model.model.layers.";

inline std::string module_of(uint32_t layer, const std::string& part) {
  return kPrefix + std::to_string(layer) + "." + part;
}

/// Writes a GGUF adapter with stacked experts, as llama.cpp's converter does.
inline void write_stacked(const Layers& layers, const std::string& architecture, float alpha,
                          const std::filesystem::path& to) {
  std::vector<AdapterMatrix> matrices;
  for (const auto& [layer, of] : layers)
    for (const auto& [part, one] :
         {std::pair("gate", &of.gate), {"up", &of.up}, {"down", &of.down}}) {
      const std::string name =
          "blk." + std::to_string(layer) + ".ffn_" + part + "_exps.weight.lora_";
      const uint64_t experts = one->down.size();
      AdapterMatrix a = {name + "a", one->rank, one->columns, {}, experts},
                    b = {name + "b", one->rows, one->rank, {}, experts};
      for (uint64_t e = 0; e < experts; ++e) {
        a.values.insert(a.values.end(), one->down[e].begin(), one->down[e].end());
        b.values.insert(b.values.end(), one->up[e].begin(), one->up[e].end());
      }
      matrices.push_back(std::move(a));
      matrices.push_back(std::move(b));
    }
  write_gguf_adapter(architecture, alpha, matrices, to);
}

/// Reads the experts of an adapter in tests/data/lora. `interleaved`: rows of gate and up are
/// interleaved.
inline Layers read_parameters(const std::string& name, uint64_t experts, bool interleaved) {
  const MadeTensors tensors = read_tensors(lora_dir() / name / "adapter_model.safetensors");
  Layers layers;
  for (uint32_t layer = 0; layer < 3; ++layer) {
    const std::string module = module_of(layer, "mlp.experts");
    if (tensors.count(module + ".lora_A.weight") == 0) continue;
    const ExpertMatrices both = parameter(tensors, module + ".base_layer", experts);
    const uint64_t F = both.rows / 2;
    layers[layer] = {rows_of(both, 0, interleaved ? 2 : 1, F),
                     rows_of(both, interleaved ? 1 : F, interleaved ? 2 : 1, F),
                     parameter(tensors, module, experts)};
  }
  return layers;
}

/// Writes the adapter with A and B of parameters in the layout of PEFT before 0.19.
inline std::filesystem::path write_turned(const std::string& name, uint64_t experts,
                                          const std::filesystem::path& to) {
  return changed_adapter(to, name, [&](nlohmann::json& config, MadeTensors& tensors) {
    config.erase("peft_version");
    const MadeTensors given = tensors;
    for (const auto& [tensor, ignored] : given) {
      const size_t end = tensor.find(".lora_A.weight");
      const std::string module = tensor.substr(0, end);
      if (end != tensor.npos && module.find("mlp.experts") != module.npos)
        put_parameter(tensors, module, parameter(given, module, experts), true);
    }
  });
}

/// Reads adapters of experts that have modules of their own, to write them in other forms: as
/// parameters, as a GGUF file.
inline Layers read_modules(const std::filesystem::path& adapter, const std::set<std::string>& gates,
                           const std::set<std::string>& ups) {
  Layers layers;
  std::map<std::pair<uint32_t, std::string>, std::map<uint64_t, std::string>> modules;
  const MadeTensors tensors = read_tensors(adapter / "adapter_model.safetensors");
  for (const auto& [name, tensor] : tensors) {
    const size_t end = name.find(".lora_A.weight"), experts = name.find(".experts.");
    if (end == name.npos || experts == name.npos) continue;
    const std::string module = name.substr(0, end), rest = module.substr(experts + 9);
    const auto layer = static_cast<uint32_t>(std::stoul(name.substr(std::strlen(kPrefix))));
    modules[{layer, rest.substr(rest.find('.') + 1)}][std::stoul(rest)] = module;
  }
  for (const auto& [where, of_experts] : modules) {
    OfLayer& layer = layers[where.first];
    ExpertMatrices& to = gates.count(where.second) > 0 ? layer.gate
                         : ups.count(where.second) > 0 ? layer.up
                                                       : layer.down;
    for (const auto& [expert, module] : of_experts) {
      const ExpertMatrices one = parameter(tensors, module, 1);
      to.rank = one.rank;
      to.rows = one.rows;
      to.columns = one.columns;
      to.down.push_back(one.down[0]);
      to.up.push_back(one.up[0]);
    }
  }
  return layers;
}

/// Writes such an adapter as PEFT saves it for a model that transformers loaded in release 5.
inline void write_parameters(const Layers& layers, bool turned, const std::filesystem::path& to) {
  MadeTensors tensors;
  for (const auto& [layer, of] : layers) {
    const std::string module = module_of(layer, "mlp.experts");
    put_parameter(tensors, module + ".base_layer", fused(of.gate, of.up), turned);
    put_parameter(tensors, module, of.down, turned);
  }
  nlohmann::json config = {{"peft_type", "LORA"},
                           {"r", kMadeRank},
                           {"lora_alpha", kMadeRank},
                           {"target_parameters", {"gate_up_proj", "down_proj"}},
                           {"rank_pattern", {{".*\\.gate_up_proj", 2 * kMadeRank}}},
                           {"alpha_pattern", {{".*\\.gate_up_proj", 2 * kMadeRank}}}};
  if (!turned) config["peft_version"] = "0.21.2";
  write_file(to / "adapter_config.json", config.dump());
  write_file(to / "adapter_model.safetensors", tensor_bytes(tensors));
}

}  // namespace mulciber::tests
