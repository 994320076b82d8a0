// A LoRA adapter as people download it: a folder of PEFT's, or a GGUF file of llama.cpp's
// converter. Source: Hu et al. 2021, arXiv:2106.09685.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "checkpoints/checkpoint_tensor.h"
#include "checkpoints/model_files.h"

namespace mulciber {

class GgufFile;
class SafetensorsFile;

/// Ranks above it are mistakes: published ones are at most 256.
constexpr uint32_t kMostRank = 1024;

/// What an adapter adds to one weight W: factor * B A.
struct LowRankUpdate {
  std::string weight;  // as files of the base model call it
  uint32_t rank = 0;
  double factor = 1;                       // alpha / rank, or alpha / sqrt(rank) (rsLoRA:
                                           // Kalajdzievski 2023, arXiv:2312.03732)
  const CheckpointTensor* down = nullptr;  // A: (rank, columns of W)
  const CheckpointTensor* up = nullptr;    // B: (rows of W, rank)
};

/// Checked but for what the base model says: that it has these weights, and their shapes.
class LowRankAdapter {
 public:
  /// path: a folder with adapter_config.json and adapter_model.safetensors, or a GGUF file. Throws
  /// ModelError, naming file and tensor, when it is malformed, holds more than low-rank matrices
  /// (DoRA, biases, whole modules) or none.
  explicit LowRankAdapter(const std::filesystem::path& path, const ModelFiles& files = {});
  ~LowRankAdapter();

  /// The file that holds the tensors, for messages.
  const std::string& where() const { return where_; }
  /// general.architecture of a GGUF file; empty: a folder of PEFT's, which goes with Hugging Face's
  /// names.
  const std::string& architecture() const { return architecture_; }
  /// Sorted by weight, each once.
  const std::vector<LowRankUpdate>& updates() const { return updates_; }
  /// The largest.
  uint32_t rank() const;

  /// Values of one of its tensors. Throws ModelError where one is NaN or infinite.
  std::vector<float> values(const CheckpointTensor& tensor) const;

 private:
  void read_folder(const std::filesystem::path& folder, const ModelFiles& files);
  void read_gguf(const ModelFile& file);
  [[noreturn]] void fail(const std::string& tensor, const std::string& problem,
                         const std::string& remedy = {}) const;
  /// Pairs of A and B that belong to one weight, by their shapes.
  void take(LowRankUpdate update);

  std::string where_, architecture_;
  std::unique_ptr<SafetensorsFile> safetensors_;
  std::unique_ptr<GgufFile> gguf_;
  std::vector<LowRankUpdate> updates_;
};

}  // namespace mulciber
