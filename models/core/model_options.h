// How a model is loaded, whatever its family.
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
  std::optional<bool> folded_norms;       // NetworkTypes::folded_norms; none: where it pays
  std::optional<bool> folded_appends;     // NetworkTypes::folded_appends; none: where it pays
  std::optional<DataType> cache;          // of keys and values that are kept; none: as activations
  uint64_t memory_limit = 0;              // bytes of device memory; 0: what is available
  uint32_t context = 0;  // tokens of the longest sequence; 0: what the model was made for
  std::vector<HeadNumber> masked_heads = {};  // of decoder-only models
  /// Contexts that the caller will hold (of decoder-only models), planned with the weights; 0: the
  /// weights alone.
  uint32_t sequences = 0;
  uint64_t cache_tokens = 0;  // of all of them together; 0: as many as the contexts have
  std::vector<OpenAdapter> adapters = {};
  bool merge_adapters = false;  // into the weights, with their scales
  WeightProgress on_progress = {};
  /// By Architecture::start_weights() with the same options, and complete; null: load() reads them.
  std::shared_ptr<WeightsLoad> weights = {};
  /// Called once with what loading plans, before it is checked and anything is loaded.
  std::function<void(const MemoryPrediction&)> on_plan = {};
};

DataType storage_type(KeyValueStorage storage);
/// Type of the caches that a decoder keeps. Throws ModelError where activations and caches do not
/// go together.
DataType cache_type(const ModelOptions& options);

}  // namespace mulciber
