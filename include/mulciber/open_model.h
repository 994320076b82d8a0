// A model's files, opened.
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

/// A Hugging Face folder or a GGUF file (any part of a split one) whose files are open. For
/// programs that use one more than once, such as to plan memory and then load it, or to load it on
/// two devices: what they share is read once.
class OpenModel;

/// Throws ModelError when files are missing, malformed, or contradict each other.
MULCIBER_API std::shared_ptr<const OpenModel> open_model(const std::string& path);

/// A model's file as the host has it, in memory or behind a function.
struct LentFile {
  std::string name;  // as in the model's folder: "config.json", "1_Pooling/config.json", "a.gguf"
  /// All of it, where it is in memory.
  std::span<const std::byte> bytes;
  /// Otherwise: fills `into`, at most kMostLentRead bytes, from `offset` on, and says how many it
  /// gave; fewer are an error. What it throws passes through. Called by the calls of the library
  /// that read files, on their thread: open_model(), loading, and what first asks for a tokenizer
  /// or a chat template.
  std::function<size_t(uint64_t offset, std::span<std::byte> into)> read;
  uint64_t size = 0;  // of what is behind the function
};
constexpr size_t kMostLentRead = size_t{1} << 20;

/// The same from files of the host's, and no others: those of a Hugging Face folder, where
/// config.json or model.safetensors is among them, otherwise the first of the list, with the other
/// parts of a split one. They must stay until the model and what was loaded of it are destroyed.
/// Nothing of files in memory is copied, or written to; of files behind functions headers are kept,
/// and weights pass through a buffer of kMostLentRead bytes, or of a row. `name` stands for the
/// folder in messages. Throws as above.
MULCIBER_API std::shared_ptr<const OpenModel> open_model(std::vector<LentFile> files,
                                                         const std::string& name = "model");

}  // namespace mulciber
