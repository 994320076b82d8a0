// Low-rank adapters beside a network's weights.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/tensor.h"

namespace mulciber {

/// An adapter. It uses `count` scales of a row, from `first` on.
struct NetworkAdapter {
  std::string name;
  uint32_t first = 0, count = 0;
  float scale = 1;  // default scale
};

/// The updates of all adapters to one weight, see LowRank (layers/linear.h).
struct AdapterUpdate {
  Shape down, up;
  DataType type = DataType::kF32;
  uint32_t first = 0, count = 0;
};

struct NetworkAdapters {
  std::vector<NetworkAdapter> adapters;
  std::map<std::string, AdapterUpdate> updates;  // by name of the weight
};

/// Names of the adapters' tensors for a weight of the table.
inline std::string lora_down(const std::string& weight) { return weight + ".lora_down"; }
inline std::string lora_up(const std::string& weight) { return weight + ".lora_up"; }

}  // namespace mulciber
