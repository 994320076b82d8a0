// A GGUF file's metadata, read key by key with errors that name them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoints/checkpoint.h"

namespace mulciber {

/// Keys are given without the architecture, which stands before each of them in the file.
class GgufMetadata {
 public:
  /// A GGUF checkpoint.
  explicit GgufMetadata(const Checkpoint& checkpoint);

  const Checkpoint& checkpoint() const { return checkpoint_; }
  const GgufFile& file() const { return file_; }
  /// Throws ModelError about a key of the file, in full.
  [[noreturn]] void fail(const std::string& full_key, const std::string& problem) const;
  std::string full(const std::string& key) const { return architecture_ + "." + key; }
  /// nullptr when there is no such key.
  const GgufValue* find(const std::string& key) const { return file_.find_value(full(key)); }
  double number(const std::string& key, double fallback) const;
  /// Elements of a head of queries or keys.
  double head_size() const;
  /// The values of a tensor, empty where there is none. Throws ModelError where there are not
  /// `count` of them, all above 0.
  std::vector<double> factors(const char* tensor, uint64_t count) const;

 private:
  const Checkpoint& checkpoint_;
  const GgufFile& file_;
  std::string architecture_;
};

}  // namespace mulciber
