// Opening a model's files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "mulciber/export.h"

namespace mulciber {

/// An open Hugging Face folder or GGUF file (any part of a split one). Programs that use a model
/// more than once, for instance to plan memory and then load it, or to load it on two devices,
/// share one, so that the files are read once.
class OpenModel;

/// Opens a model. Throws ModelError when files are missing, malformed, or contradict each other.
MULCIBER_API std::shared_ptr<const OpenModel> open_model(const std::string& path);

/// A model's file that the application provides, in memory or through a function.
struct LentFile {
  std::string name;  // path in the model's folder: "config.json", "1_Pooling/config.json", "a.gguf"
  /// The whole file, where it is in memory.
  std::span<const std::byte> bytes;
  /// Otherwise: fills `into`, at most kMostLentRead bytes, from `offset` on, and returns the number
  /// of bytes; fewer than asked for are an error. Its exceptions propagate. The functions that read
  /// files call it on their thread: open_model(), loading, and the first function that needs a
  /// tokenizer or a chat template.
  std::function<size_t(uint64_t offset, std::span<std::byte> into)> read;
  uint64_t size = 0;  // bytes that the function provides
};
constexpr size_t kMostLentRead = size_t{1} << 20;

/// Opens a model from files that the application provides, and no others. With config.json or
/// model.safetensors among them, the files form a Hugging Face folder; otherwise the first file is
/// a GGUF file, and the others are the parts of a split one. The files must stay valid until the
/// model and everything loaded from it are destroyed. Files in memory are neither copied nor
/// written to. The headers of files behind functions are kept, and their weights pass through a
/// buffer of kMostLentRead bytes, or of a row. name: the folder's name in messages. Throws
/// ModelError as open_model(path) does.
MULCIBER_API std::shared_ptr<const OpenModel> open_model(std::vector<LentFile> files,
                                                         const std::string& name = "model");

}  // namespace mulciber
