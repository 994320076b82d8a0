// The safetensors container: a JSON header and the raw bytes of named tensors.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "checkpoints/checkpoint_tensor.h"
#include "checkpoints/model_file.h"

namespace mulciber {

/// A fully checked .safetensors file.
/// Source of the format: https://huggingface.co/docs/safetensors/index
class SafetensorsFile {
 public:
  /// Checks the header: length against the file's size, syntax, known types, shape products,
  /// offsets that cover the data without gap or overlap, unique names. No number of the file is
  /// trusted, and memory use stays within a small multiple of the header's real length. Throws
  /// ModelError naming file and tensor.
  explicit SafetensorsFile(ModelFile file);

  const std::filesystem::path& path() const { return file_.path(); }
  /// In the order of their bytes in the file.
  const std::vector<CheckpointTensor>& tensors() const { return tensors_; }
  /// nullptr when there is no tensor of that name. Logarithmic.
  const CheckpointTensor* find(std::string_view name) const;
  /// The free-form `__metadata__` strings.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  ModelFile file_;
  std::vector<CheckpointTensor> tensors_;
  std::vector<std::uint32_t> by_name_;  // indices into tensors_, sorted by name
  std::map<std::string, std::string> metadata_;
};

}  // namespace mulciber
