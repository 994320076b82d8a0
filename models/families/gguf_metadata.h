// Reader of GGUF metadata, whose errors name the key.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoints/checkpoint.h"

namespace mulciber {

/// Callers give keys without the architecture, the prefix of each key in the file.
class GgufMetadata {
 public:
  /// checkpoint: of a GGUF file.
  explicit GgufMetadata(const Checkpoint& checkpoint);

  const Checkpoint& checkpoint() const { return checkpoint_; }
  const GgufFile& file() const { return file_; }
  /// Throws ModelError about a key. full_key: with the architecture.
  [[noreturn]] void fail(const std::string& full_key, const std::string& problem) const;
  std::string full(const std::string& key) const { return architecture_ + "." + key; }
  /// nullptr when there is no such key.
  const GgufValue* find(const std::string& key) const { return file_.find_value(full(key)); }
  double number(const std::string& key, double fallback) const;
  /// Elements of a head of queries or keys.
  double head_size() const;
  /// Values of a tensor; empty if the file does not have it. Throws ModelError unless it has
  /// `count` values above 0.
  std::vector<double> factors(const char* tensor, uint64_t count) const;

 private:
  const Checkpoint& checkpoint_;
  const GgufFile& file_;
  std::string architecture_;
};

}  // namespace mulciber
