// Readers of the reference models' files.
#pragma once

#include <cstring>
#include <vector>

#include "checkpoints/checkpoint.h"

namespace mulciber::tests {

/// Reads the values of a tensor of f32 numbers or of 64-bit ids.
inline std::vector<double> read_values(const CheckpointTensor& tensor) {
  std::vector<double> values;
  for (size_t i = 0; i < tensor.elements(); ++i) {
    if (tensor.type == CheckpointType::kI64) {
      int64_t value;
      std::memcpy(&value, tensor.bytes.data() + 8 * i, 8);
      values.push_back(static_cast<double>(value));
    } else {
      float value;
      std::memcpy(&value, tensor.bytes.data() + 4 * i, 4);
      values.push_back(value);
    }
  }
  return values;
}

}  // namespace mulciber::tests
