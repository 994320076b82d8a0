// Loading options of models of every family.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "checkpoints/weights.h"
#include "mulciber/load_options.h"
#include "mulciber/text_generator.h"

namespace mulciber {

class LowRankAdapter;  // models/adapters/low_rank_adapter.h
class WeightsLoad;     // models/core/device_weights.h

/// A LoRA adapter whose files are open.
struct OpenAdapter {
  std::string name;
  float scale = 1;  // AdapterFile::scale
  std::shared_ptr<const LowRankAdapter> files;
};

struct ModelOptions {
  MatrixStorage matrices = MatrixStorage::kAsInFile;
  DataType activations = DataType::kF32;  // or f16
  bool fast_activations = false;          // LoadOptions::fast_activations; activations in f32
  std::optional<bool> folded_norms;       // NetworkTypes::folded_norms; none: where it is faster
  std::optional<bool> folded_appends;     // NetworkTypes::folded_appends; none: where it is faster
  std::optional<DataType> cache;          // type of the KV cache; none: that of activations
  uint64_t memory_limit = 0;              // bytes of device memory; 0: what is available
  uint32_t context = 0;                   // tokens of the longest sequence; 0: the model's own
  std::vector<HeadNumber> masked_heads = {};  // for decoder-only models
  /// Contexts that the caller of a decoder-only model will hold, whose memory is planned with the
  /// weights; 0: only the weights are planned. For an encoder-decoder any other number plans one
  /// text of `context` tokens.
  uint32_t sequences = 0;
  uint64_t cache_tokens = 0;  // capacity of the paged KV cache; 0: all contexts
  std::vector<OpenAdapter> adapters = {};
  bool merge_adapters = false;  // merge adapters into the weights, with their scales
  WeightProgress on_progress = {};
  /// Complete weights from start_weights() with equal options; null: load() reads them.
  std::shared_ptr<WeightsLoad> weights = {};
  /// Called once with the planned memory, before it is checked and anything is loaded.
  std::function<void(const MemoryPrediction&)> on_plan = {};
};

DataType storage_type(KeyValueStorage storage);
/// Type of a decoder's KV cache. Throws ModelError when the types of activations and cache cannot
/// be combined.
DataType cache_type(const ModelOptions& options);

}  // namespace mulciber
