// What translators and text generators have in common when they are loaded.
#pragma once

#include <cstdint>
#include <functional>

namespace mulciber {

/// How the weights of a model go to the device.
struct LoadOptions {
  bool half_weights = false;      // keep matrices in 16 bits even where the file holds 32
  bool half_activations = false;  // activations and caches in 16 bits; sums stay in 32
  /// Of language models whose file is quantized: activations are quantized to 8 bits too, a scale
  /// for every 32, before they are multiplied with such weights, as llama.cpp does. GPUs with an
  /// instruction for dot products of 8-bit integers have far less to compute then, and the model's
  /// output moves by what is rounded off (docs/performance.md has figures). On other GPUs nothing
  /// changes; software drivers do the same without being faster. Not with half_activations.
  bool fast_activations = false;
  /// Most device memory the model may take, bytes; 0: what the device has available.
  uint64_t memory_limit = 0;
  /// Called while weights go to the device, with their bytes so far and in all.
  std::function<void(uint64_t done, uint64_t total)> on_progress = {};
};

}  // namespace mulciber
