// What translators and text generators have in common when they are loaded.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace mulciber {

/// A LoRA adapter, low-rank matrices that are added to a model's: a folder of PEFT's (its
/// adapter_config.json and adapter_model.safetensors), or a GGUF file. Decoder-only models take
/// either, whatever their own format.
/// Source: Hu et al. 2021, arXiv:2106.09685.
struct AdapterFile {
  std::string path;
  std::string name;  // for requests; empty: that of the folder, or of the file without its ending
  /// What it is added with where a request names no adapters; 0: not at all.
  float scale = 1;
};

/// An adapter as a request wants it.
struct AdapterScale {
  std::string name;
  float scale = 1;
};

/// How the weights of a model go to the device.
struct LoadOptions {
  bool half_weights = false;      // keep matrices in 16 bits even where the file holds 32
  bool half_activations = false;  // activations and caches in 16 bits; sums stay in 32
  /// Of language models whose file is quantized: activations are quantized to 8 bits too, a scale
  /// for every 32, before they are multiplied with such weights, as llama.cpp does. GPUs with an
  /// instruction for dot products of 8-bit integers have far less to compute then, and the model's
  /// output moves by what is rounded off (docs/internals/performance.md has figures). On other GPUs
  /// nothing changes; software drivers do the same without being faster. Not with half_activations.
  bool fast_activations = false;
  /// Most device memory the model may take, bytes; 0: what the device has available.
  uint64_t memory_limit = 0;
  /// Stay beside the weights of language models, and a request says which it wants; with
  /// `merge_adapters`, and always in other models, they are added to the weights for good, with
  /// their scales. Weights in blocks cannot take them so. Loading throws ModelError, naming file
  /// and tensor, for adapters that are malformed or do not fit the model, SettingError for names
  /// that stand twice and scales that are no numbers.
  std::vector<AdapterFile> adapters = {};
  bool merge_adapters = false;
  /// Called while weights go to the device, with their bytes so far and in all.
  std::function<void(uint64_t done, uint64_t total)> on_progress = {};
};

}  // namespace mulciber
