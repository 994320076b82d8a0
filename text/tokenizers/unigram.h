// Unigram language model segmentation.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizers/trie.h"

namespace mulciber {

/// Kinds of pieces, numbered like in SentencePiece files and GGUF's token types.
enum class PieceType : std::uint8_t {
  kNormal = 1,
  kUnknown = 2,      // for text that no piece covers
  kControl = 3,      // never found in a text
  kUserDefined = 4,  // always kept whole
  kUnused = 5,       // exists, but is never produced
  kByte = 6,         // <0x00> to <0xFF>
};

struct Piece {
  std::string text;
  double score = 0;
  PieceType type = PieceType::kNormal;
};

/// A part of a text and the piece that covers it.
struct Segment {
  std::size_t begin, end;
  std::int32_t id;
};

/// The most probable segmentation of a text into pieces, whose log probabilities add up.
/// A character that no piece covers costs ten less than the least probable piece.
/// Source: Kudo 2018, arXiv:1804.10959; tie-breaking as in SentencePiece (the first path found
/// stays).
class UnigramModel {
 public:
  enum class Precision {
    kSingle,
    kDouble
  };  // precision of running sums: SentencePiece float, Hugging Face double

  UnigramModel() = default;
  /// pieces: the index is the id. Normal, user-defined and unused pieces take part. unknown_id: the
  /// id for uncovered characters.
  UnigramModel(std::span<const Piece> pieces, std::int32_t unknown_id, Precision precision);

  /// Segments in order; each uncovered character is a segment with the unknown id.
  std::vector<Segment> segment(std::string_view text) const;

 private:
  template <typename Score>
  std::vector<Segment> viterbi(std::string_view text) const;

  PieceTrie trie_;
  std::vector<double> scores_;
  std::vector<PieceType> types_;
  std::int32_t unknown_id_ = 0;
  Precision precision_ = Precision::kSingle;
  double unknown_score_ = 0;
  double highest_score_ = 0;
};

}  // namespace mulciber
