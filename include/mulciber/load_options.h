// Loading options that all kinds of models share.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace mulciber {

/// A LoRA adapter, whose low-rank matrices are added to a model's weights: a PEFT folder
/// (adapter_config.json and adapter_model.safetensors) or a GGUF file. Decoder-only models take
/// either format, whatever their own.
/// Source: Hu et al. 2021, arXiv:2106.09685.
struct AdapterFile {
  std::string path;
  std::string name;  // for requests; empty: the folder's name, or the file's without extension
  /// Scale where a request names no adapters; 0: the adapter is off.
  float scale = 1;
};

/// An adapter that a request selects, with its scale.
struct AdapterScale {
  std::string name;
  float scale = 1;
};

/// How a model is loaded to the device.
struct LoadOptions {
  bool half_weights = false;      // keep matrices in 16 bits even where the file holds 32
  bool half_activations = false;  // activations and caches in 16 bits; sums stay in 32
  /// For language models with quantized weights: quantize activations to 8 bits, a scale for every
  /// 32, before they are multiplied with such weights, as llama.cpp does. GPUs with integer dot
  /// products compute far less then, and the model's output changes by the rounding
  /// (docs/internals/performance.md has figures). Other GPUs ignore the option; software drivers
  /// obey it without being faster. It excludes half_activations.
  bool fast_activations = false;
  /// Limit of device memory for the model, bytes; 0: what the device has available.
  uint64_t memory_limit = 0;
  /// LoRA adapters. Language models keep them beside the weights, and requests select them; with
  /// `merge_adapters`, and always in other models, they are merged into the weights with their
  /// scales. Quantized weights cannot be merged. Loading throws ModelError, naming file and tensor,
  /// for adapters that are malformed or do not fit the model, and SettingError for duplicate names
  /// and scales that are NaN or infinite.
  std::vector<AdapterFile> adapters = {};
  bool merge_adapters = false;
  /// Called while weights are uploaded, with the bytes done and in total.
  std::function<void(uint64_t done, uint64_t total)> on_progress = {};
};

}  // namespace mulciber
