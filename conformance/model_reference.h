// An encoder-decoder transformer in double precision, from a checkpoint's weights.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "checkpoints/checkpoint.h"
#include "conformance/blocks/block_parts.h"
#include "conformance/models_under_test.h"

namespace mulciber::conformance {

/// Source: Vaswani et al. 2017, arXiv:1706.03762.
class ModelReference {
 public:
  /// Throws ModelError when a weight is missing.
  ModelReference(const TranslationFiles& files, const Arithmetic& arithmetic);

  /// Result: (1, length, D).
  CpuTensor encode(std::span<const uint32_t> source) const;
  /// Result: (1, targets, vocabulary). memory: the result of encode().
  CpuTensor logits(const CpuTensor& memory, std::span<const uint32_t> target) const;

 private:
  size_t add(const Checkpoint& checkpoint, const std::vector<std::string>& names, DataType type,
             Shape shape);
  LayerPart layer(const Checkpoint& checkpoint, const std::string& name, bool decoder);
  CpuTensor embed(std::span<const uint32_t> ids) const;

  TransformerShape shape_;
  Arithmetic arithmetic_;
  std::vector<CpuTensor> weights_;  // weights in the device's storage
  std::vector<LayerPart> encoder_, decoder_;
  size_t embedding_ = 0;
  LinearPart output_;
};

}  // namespace mulciber::conformance
