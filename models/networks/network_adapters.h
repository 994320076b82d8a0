// Low-rank adapters as a network has them: beside its weights, one after another.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/tensor.h"

namespace mulciber {

/// An adapter beside a network's weights: a row's scales from `first` on are its own.
struct NetworkAdapter {
  std::string name;
  uint32_t first = 0, count = 0;
  float scale = 1;  // where nobody asks for another
};

/// What all adapters add to one weight, as LowRank (layers/linear.h) says.
struct AdapterUpdate {
  Shape down, up;
  DataType type = DataType::kF32;
  uint32_t first = 0, count = 0;
};

struct NetworkAdapters {
  std::vector<NetworkAdapter> adapters;
  std::map<std::string, AdapterUpdate> updates;  // by weight
};

/// Names of the tensors that are added for a weight of the table.
inline std::string lora_down(const std::string& weight) { return weight + ".lora_down"; }
inline std::string lora_up(const std::string& weight) { return weight + ".lora_up"; }

}  // namespace mulciber
