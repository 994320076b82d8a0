// The weights and configuration of a downloaded model.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/lazy.h"
#include "checkpoints/gguf.h"
#include "checkpoints/json.h"
#include "checkpoints/model_files.h"
#include "checkpoints/safetensors.h"

namespace mulciber {

/// A Hugging Face folder (config.json with model.safetensors, or model.safetensors.index.json and
/// its shards), a single .safetensors file, or a .gguf file (any part of a split one). Tensors stay
/// in the files, which the object holds. Names are those of the files: each model's weight table
/// knows its own aliases. Each file is opened once, so callers pass the Checkpoint on instead of
/// its path.
class Checkpoint {
 public:
  enum class Contents {
    kModel,
    kText,  // only the files of a folder that tokenizers and chat templates read: tensors() is
            // empty, weights may be missing
  };
  /// Throws ModelError when files are missing, malformed, or contradict each other; an index may
  /// only name files inside its own folder. A folder without config.json opens; only config()
  /// throws then.
  explicit Checkpoint(const std::filesystem::path& path, Contents contents = Contents::kModel);
  /// Opens files that the application lends, with the arguments of open_model().
  Checkpoint(std::vector<LentFile> files, const std::string& name);

  /// Gives access to the model's other files, by folder() / name.
  const ModelFiles& files() const { return sources_; }
  const std::filesystem::path& path() const { return path_; }
  /// The folder that holds the checkpoint's files.
  const std::filesystem::path& folder() const { return folder_; }

  bool is_folder() const { return is_folder_; }

  /// The first part of a GGUF checkpoint, which holds its metadata; nullptr for other formats.
  const GgufFile* gguf() const { return gguf_files_.empty() ? nullptr : gguf_files_[0].get(); }

  bool has_config() const { return config_ != nullptr; }
  /// config.json. Throws ModelError when there is none.
  const Json& config() const;
  /// generation_config.json; nullptr when there is none.
  const Json* generation_config() const { return generation_config_.get(); }
  /// tokenizer_config.json; nullptr when there is none. Throws ModelError when it cannot be read.
  const Json* tokenizer_config() const;
  /// `model_type` of config.json, or "" when there is none.
  std::string model_type() const;
  /// The first entry of `architectures` in config.json, the class that wrote it, or "".
  std::string model_class() const;

  /// The tensors of all files, sorted by name.
  const std::vector<const CheckpointTensor*>& tensors() const { return tensors_; }
  /// nullptr when there is no tensor of that name. A matrix that a quantizer stored as several
  /// tensors is found under its original name, as blocks (checkpoints/scaled_matrix.h).
  const CheckpointTensor* find(std::string_view name) const;
  /// Throws ModelError naming the tensor when it is missing.
  const CheckpointTensor& at(std::string_view name) const;
  std::vector<std::string> names() const;
  /// Bytes of all tensors together.
  std::uint64_t total_bytes() const;
  std::size_t file_count() const { return files_.size() + gguf_files_.size(); }

 private:
  void open_shards(const std::filesystem::path& index);
  void open_file();
  void open_gguf(ModelFile file);
  void open_folder(Contents contents);
  /// Lists the tensors of all files, sorted by name.
  void list_tensors();
  void find_scaled_matrices();

  ModelFiles sources_;
  std::filesystem::path path_, folder_;
  bool is_folder_ = false;
  std::shared_ptr<const Json> config_, generation_config_;
  Lazy<std::shared_ptr<const Json>> tokenizer_config_;
  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::vector<std::unique_ptr<GgufFile>> gguf_files_;
  std::vector<const CheckpointTensor*> tensors_;
  std::vector<std::unique_ptr<CheckpointTensor>> scaled_matrices_;  // sorted by name
};

}  // namespace mulciber
