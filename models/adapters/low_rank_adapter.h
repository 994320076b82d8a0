// Files of a LoRA adapter: a PEFT folder, or a GGUF file of llama.cpp's converter. Source: Hu et
// al. 2021, arXiv:2106.09685.
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

/// Limit of ranks: published adapters have ranks up to 256.
constexpr uint32_t kMostRank = 1024;

/// Matrix A or B of one weight W, or of all experts in one tensor.
struct LowRankFactor {
  const CheckpointTensor* tensor = nullptr;
  uint64_t width = 0;                                 // columns of W for A, rows for B
  uint64_t of_expert = 0, of_rank = 0, of_width = 0;  // strides in elements

  uint64_t index(uint64_t expert, uint64_t of_the_rank, uint64_t of_the_width) const {
    return expert * of_expert + of_the_rank * of_rank + of_the_width * of_width;
  }
};

/// An adapter's update of one weight W: factor * B A.
struct LowRankUpdate {
  std::string weight;  // name in the base model's files
  uint32_t rank = 0;
  uint64_t experts = 1;    // number of experts whose W share a tensor
  bool parameter = false;  // the target is a parameter, see LowRankAdapter::turned()
  double factor = 1;       // alpha / rank, or alpha / sqrt(rank) (rsLoRA: Kalajdzievski 2023,
                           // arXiv:2312.03732)
  LowRankFactor down, up;  // A, B
};

/// An adapter's files, checked except for what needs the base model: that it has these weights with
/// these shapes.
class LowRankAdapter {
 public:
  /// path: a folder with adapter_config.json and adapter_model.safetensors, or a GGUF file. Throws
  /// ModelError, naming file and tensor, when it is malformed, contains more than low-rank matrices
  /// (DoRA, biases, whole modules), or contains none.
  explicit LowRankAdapter(const std::filesystem::path& path, const ModelFiles& files = {});
  ~LowRankAdapter();

  /// The file that holds the tensors, for messages.
  const std::string& where() const { return where_; }
  /// general.architecture of a GGUF file; empty: a PEFT folder, which uses Hugging Face's names.
  const std::string& architecture() const { return architecture_; }
  /// Updates sorted by weight, one for each weight.
  const std::vector<LowRankUpdate>& updates() const { return updates_; }
  /// The largest rank.
  uint32_t rank() const;
  /// Whether it changes parameters, which hold all experts in transformers since release 5.
  bool parameters() const { return parameters_; }
  /// Whether A and B of a parameter of experts are swapped, so that A has the width of W's rows and
  /// B that of its columns; used when their widths are ambiguous. PEFT before release 0.19 assumed
  /// that every parameter is (experts, columns, rows). transposed: whether this parameter is.
  bool turned(bool transposed) const { return turned_.value_or(old_parameters_ && !transposed); }

  /// Returns the model's tensor for a name in the adapter; null: there is none.
  using FindTensor = std::function<const CheckpointTensor*(const std::string& name)>;
  /// Compares embedding and output matrices, which PEFT saves with the adapter, with the model's.
  /// Throws ModelError when they differ, because the matrix was trained too or has other tokens.
  /// For quantized matrices only shapes are compared.
  void compare_copies(const FindTensor& find) const;

  /// Values of one of its tensors. Throws ModelError for NaN or infinity.
  std::vector<float> values(const CheckpointTensor& tensor) const;

 private:
  void read_folder(const std::filesystem::path& folder, const ModelFiles& files);
  void read_gguf(const ModelFile& file);
  [[noreturn]] void fail(const std::string& tensor, const std::string& problem,
                         const std::string& remedy = {}) const;
  /// Adds an update after checking the shapes of A and B. experts: number of experts in its
  /// matrices.
  void take(LowRankUpdate update, uint64_t experts = 1);
  /// Sets turned_ by the widths, if both parameters of experts are present.
  void compare_parameters();

  std::string where_, architecture_;
  std::unique_ptr<SafetensorsFile> safetensors_;
  std::unique_ptr<GgufFile> gguf_;
  std::vector<LowRankUpdate> updates_;
  std::vector<std::pair<std::string, const CheckpointTensor*>> copies_;  // by names of the model
  bool parameters_ = false, old_parameters_ = false;
  std::optional<bool> turned_;
};

}  // namespace mulciber
