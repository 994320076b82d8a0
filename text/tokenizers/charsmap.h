// SentencePiece's compiled normalization table.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mulciber {

/// Maps character sequences to their normal form: a double-array trie whose values are offsets into
/// a block of zero-terminated replacements. Source: Kudo and Richardson 2018, arXiv:1808.06226,
/// section 3.2; the array has darts-clone's layout.
class CharsMap {
 public:
  CharsMap() = default;
  /// blob: trie size in bytes (32-bit little-endian), trie, replacements. An empty blob maps
  /// nothing. Every reference of the trie is checked here, so that lookups need no checks. Throws
  /// ModelError naming `where`.
  CharsMap(std::string_view blob, const std::string& where);

  bool empty() const { return units_.empty(); }

  struct Match {
    std::size_t length = 0;  // bytes of the text that are replaced; 0 when nothing matches
    std::string_view replacement;
  };
  /// The match that SentencePiece uses.
  Match longest_prefix(std::string_view text) const;
  /// The match that Hugging Face's Precompiled normalizer uses for each grapheme.
  Match shortest_prefix(std::string_view text) const;

 private:
  Match find(std::string_view text, bool longest) const;

  std::vector<std::uint32_t> units_;
  std::string replacements_;
};

}  // namespace mulciber
