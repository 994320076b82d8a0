// Merges neighbouring parts of a text into pieces, best score first, like SentencePiece's BPE
// models.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

namespace mulciber {

/// Bytes [begin, begin + length) of a text.
struct TextPart {
  std::size_t begin, length;
  bool frozen = false;  // is not merged
};

/// The score of the piece that two neighbours make: bytes [begin, begin + length), of which the
/// first neighbour has `left`. Nothing: there is no such piece.
using PairScore =
    std::function<std::optional<double>(std::size_t begin, std::size_t left, std::size_t length)>;

/// Merges the neighbours whose piece has the best score, the leftmost of equal ones, until no pair
/// makes a piece. parts: the whole text, in order. Source: Sennrich, Haddow and Birch 2016,
/// arXiv:1508.07909, with scores in place of merge ranks.
std::vector<TextPart> merge_by_score(const std::vector<TextPart>& parts, const PairScore& score);

}  // namespace mulciber
