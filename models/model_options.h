// How a model is loaded, whatever its family.
#pragma once

#include "models/weights.h"

namespace mulciber {

struct ModelOptions {
  MatrixStorage matrices = MatrixStorage::kAsInFile;
  DataType activations = DataType::kF32;  // or f16
  uint64_t memory_limit = 0;              // bytes of device memory; 0: what is available
  uint32_t context = 0;                   // tokens of the longest sequence; 0: what the model was made for
};

}  // namespace mulciber
