// A network's weights as adapters call them otherwise than the model's files: those made for the
// other format (a folder of PEFT's for a model in a GGUF file, a GGUF adapter for one in a Hugging
// Face folder), and PEFT's of experts that are one parameter.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "checkpoints/weights.h"
#include "models/families/decoder_config.h"

namespace mulciber {

/// Of heads one below the other: rotary pairs that two files order differently.
struct RotatedRows {
  uint64_t rows = 0;  // of the weight, from the first on: queries and keys
  uint64_t head = 0, rotated = 0;
  RotaryPairs model = RotaryPairs::kHalves, adapter = RotaryPairs::kHalves;

  /// Row of the adapter's matrix for one of the model's.
  uint64_t in_adapter(uint64_t row) const;
};

struct AdapterTable {
  /// Weights, shapes and rows are those of the model's own table. The sources are not.
  WeightTable table;
  std::map<std::string, RotatedRows> rotated;  // by weight, where pairs differ
  std::string architecture;                    // as LowRankAdapter::architecture()
  bool parameters = false;                     // as LowRankAdapter::parameters()

  /// nullptr: there is no such weight.
  const WeightSpec* find(const std::string& weight) const;
};

/// None for the other format where the family has no files of it, or holds its heads otherwise in
/// them than can be told.
std::vector<AdapterTable> other_adapter_tables(const DecoderConfig& config);

}  // namespace mulciber
