// Weight tables for adapters whose names differ from the model's files: adapters for the other
// format (a PEFT folder for a GGUF model, a GGUF adapter for a Hugging Face model), and PEFT
// adapters of experts that are one parameter.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "checkpoints/weights.h"
#include "models/families/decoder_config.h"

namespace mulciber {

/// A different order of rotary pairs in the rows of heads.
struct RotatedRows {
  uint64_t rows = 0;  // first rows of the weight: queries and keys
  uint64_t head = 0, rotated = 0;
  RotaryPairs model = RotaryPairs::kHalves, adapter = RotaryPairs::kHalves;

  /// Row of the adapter's matrix for a row of the model's.
  uint64_t in_adapter(uint64_t row) const;
};

struct AdapterTable {
  /// The model's own table with the names of other files as sources.
  WeightTable table;
  std::map<std::string, RotatedRows> rotated;  // by weight, if pairs differ
  std::string architecture;                    // see LowRankAdapter::architecture()
  bool parameters = false;                     // see LowRankAdapter::parameters()

  /// Finds a weight; nullptr: there is none of this name.
  const WeightSpec* find(const std::string& weight) const;
};

/// Makes the tables. There is none for the other format if the family has no such files, or if
/// their order of heads cannot be mapped.
std::vector<AdapterTable> other_adapter_tables(const DecoderConfig& config);

}  // namespace mulciber
