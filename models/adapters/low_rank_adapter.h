// A LoRA adapter as people download it: a folder of PEFT's, or a GGUF file of llama.cpp's
// converter. Source: Hu et al. 2021, arXiv:2106.09685.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "checkpoints/checkpoint_tensor.h"
#include "checkpoints/model_files.h"

namespace mulciber {

class Checkpoint;
class GgufFile;
class SafetensorsFile;

/// Ranks above it are mistakes: published ones are at most 256.
constexpr uint32_t kMostRank = 1024;

/// A or B of one weight W, or those of all experts in one tensor.
struct LowRankFactor {
  const CheckpointTensor* tensor = nullptr;
  uint64_t width = 0;                                 // columns of W for A, rows for B
  uint64_t of_expert = 0, of_rank = 0, of_width = 0;  // from one to the next, in elements

  uint64_t index(uint64_t expert, uint64_t of_the_rank, uint64_t of_the_width) const {
    return expert * of_expert + of_the_rank * of_rank + of_the_width * of_width;
  }
};

/// What an adapter adds to one weight W: factor * B A.
struct LowRankUpdate {
  std::string weight;  // as files of the base model call it
  uint32_t rank = 0;
  uint64_t experts = 1;    // whose W are one tensor
  bool parameter = false;  // PEFT made it of a parameter: LowRankAdapter::turned()
  double factor = 1;       // alpha / rank, or alpha / sqrt(rank) (rsLoRA: Kalajdzievski 2023,
                           // arXiv:2312.03732)
  LowRankFactor down, up;  // A, B
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
  /// Whether it changes parameters, of a model as transformers has it since release 5.
  bool parameters() const { return parameters_; }
  /// Whether what a file calls A of experts' parameter is for rows of W and B for columns, where
  /// their widths do not tell. PEFT takes a parameter for (experts, columns, rows); since release
  /// 0.19 it knows those that are not. transposed: whether this one is so.
  bool turned(bool transposed) const { return turned_.value_or(old_parameters_ && !transposed); }

  /// What the model's file holds under a name of the adapter's; null: nothing.
  using FindTensor = std::function<const CheckpointTensor*(const std::string& name)>;
  /// PEFT saves what it adapts of embeddings and outputs as well. Throws ModelError where such a
  /// matrix is not the model's: it was trained too, or has other tokens. Of a quantized one shapes
  /// alone are compared.
  void compare_copies(const FindTensor& find) const;

  /// Values of one of its tensors. Throws ModelError where one is NaN or infinite.
  std::vector<float> values(const CheckpointTensor& tensor) const;

 private:
  void read_folder(const std::filesystem::path& folder, const ModelFiles& files);
  void read_gguf(const ModelFile& file);
  [[noreturn]] void fail(const std::string& tensor, const std::string& problem,
                         const std::string& remedy = {}) const;
  /// Pairs of A and B that belong to one weight, by their shapes. experts: of matrices, one beside
  /// the other.
  void take(LowRankUpdate update, uint64_t experts = 1);
  /// Finds turned_ where both parameters of experts are there.
  void compare_parameters();

  std::string where_, architecture_;
  std::unique_ptr<SafetensorsFile> safetensors_;
  std::unique_ptr<GgufFile> gguf_;
  std::vector<LowRankUpdate> updates_;
  std::vector<std::pair<std::string, const CheckpointTensor*>> copies_;  // by the model's names
  bool parameters_ = false, old_parameters_ = false;
  std::optional<bool> turned_;
};

}  // namespace mulciber
