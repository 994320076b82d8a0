// Byte-pair encoding with ranked merges, and WordPiece.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "text/tokenizers/vocabulary.h"

namespace mulciber {

/// Merges the pair of neighbours with the lowest rank, the leftmost of equal ones, until no pair is
/// left.
/// Source: Sennrich, Haddow and Birch 2016, arXiv:1508.07909; options as in Hugging Face's
/// tokenizers.
class BpeModel {
 public:
  struct Options {
    std::optional<std::int32_t> unknown_id;  // without it, unknown characters vanish
    std::string continuing_prefix;           // before every character but a word's first
    std::string end_suffix;                  // after a word's last character
    bool fuse_unknown = false;               // a run of unknown characters becomes one token
    bool byte_fallback = false;              // unknown characters become <0x..> pieces
    bool ignore_merges = false;              // a word that is a piece is not split
  };
  using Merge = std::pair<std::string, std::string>;

  /// vocabulary must outlive the model. merges: best first.
  /// Throws ModelError naming `where` when a merge names or makes a piece that the vocabulary
  /// lacks.
  BpeModel(const Vocabulary& vocabulary, const std::vector<Merge>& merges, Options options,
           const std::string& where);

  /// Appends the ids of one word.
  void tokenize(std::string_view word, std::vector<std::int32_t>& ids) const;

 private:
  struct Result {
    std::int32_t rank, id;
  };
  static std::uint64_t key(std::int32_t left, std::int32_t right) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
           static_cast<std::uint32_t>(right);
  }
  std::vector<std::int32_t> characters(std::string_view word) const;

  const Vocabulary& vocabulary_;
  Options options_;
  std::unordered_map<std::uint64_t, Result> merges_;
};

/// Takes the longest matching piece, from left to right; a word that cannot be covered is unknown
/// as a whole. Source: Schuster and Nakajima 2012; as in BERT.
class WordPieceModel {
 public:
  struct Options {
    std::int32_t unknown_id = 0;
    std::string continuing_prefix = "##";
    std::size_t longest_word = 100;  // characters; longer words are unknown
  };
  /// vocabulary must outlive the model.
  WordPieceModel(const Vocabulary& vocabulary, Options options)
      : vocabulary_(vocabulary), options_(std::move(options)) {}

  void tokenize(std::string_view word, std::vector<std::int32_t>& ids) const;

 private:
  const Vocabulary& vocabulary_;
  Options options_;
};

}  // namespace mulciber
