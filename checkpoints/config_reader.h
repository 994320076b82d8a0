// Typed values out of a JSON configuration: key by key, with errors that name file and key.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "checkpoints/json.h"

namespace mulciber {

// Bounds far above every known model, but low enough that products of two of them fit 64 bits and a
// hostile configuration is refused before anything is allocated.
constexpr std::int64_t kMostLayers = 1024;
constexpr std::int64_t kMostHeads = 1024;
constexpr std::int64_t kWidest = 1 << 20;
constexpr std::int64_t kLargestVocab = 1 << 24;
constexpr std::int64_t kMostContext = 1 << 24;
constexpr std::int64_t kMostTokens = 1 << 24;

/// Reads one JSON object key by key. A key that is missing or null counts as absent; one of the
/// wrong type or out of range throws ModelError naming file and key. Keeps a reference to the
/// object.
class ConfigReader {
 public:
  /// where: the file, for messages; remedy: what to do about an error in it.
  ConfigReader(const Json& object, std::string where,
               std::string remedy = "the configuration does not describe a model that can be run");

  const Json& json() const { return object_; }
  const std::string& where() const { return where_; }
  const std::string& remedy() const { return remedy_; }
  bool has(const char* key) const;
  /// The value of `key`, which must exist.
  const Json& value(const char* key) const;
  /// nullptr when absent.
  const Json* find(const char* key) const;
  /// A nested object. The reader must not outlive this one's JSON.
  ConfigReader object(const char* key) const;
  const Json& list(const char* key) const;

  /// Bounds are inclusive.
  std::int64_t integer(const char* key, std::int64_t least, std::int64_t most) const;
  std::int64_t integer_or(const char* key, std::int64_t fallback, std::int64_t least,
                          std::int64_t most) const;
  std::optional<std::int64_t> optional_integer(const char* key, std::int64_t least,
                                               std::int64_t most) const;
  double number_or(const char* key, double fallback, double least, double most) const;
  bool boolean_or(const char* key, bool fallback) const;
  std::string text(const char* key) const;
  std::string text_or(const char* key, const std::string& fallback) const;
  /// A token id, or a list of them; empty when absent. Every id is below `vocab_size`.
  std::vector<std::int32_t> ids(const char* key, std::int64_t vocab_size) const;
  /// A list of lists of token ids; empty when absent.
  std::vector<std::vector<std::int32_t>> id_lists(const char* key, std::int64_t vocab_size) const;

  /// Throws ModelError about `key`.
  [[noreturn]] void fail(const std::string& key, const std::string& problem) const;

 private:
  std::int32_t id(const char* key, const Json& value, std::int64_t vocab_size) const;

  const Json& object_;
  std::string where_, remedy_;
};

}  // namespace mulciber
