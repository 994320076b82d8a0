// Joining neighbours of a text into pieces, best score first: how SentencePiece's BPE models cut
// words.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

namespace mulciber {

/// Bytes [begin, begin + length) of a text.
struct TextPart {
  std::size_t begin, length;
  bool frozen = false;  // stays as it is
};

/// The score of the piece that two neighbours make: the one that begins at `begin` and takes `left`
/// bytes of the `length`. Nothing: there is no such piece.
using PairScore =
    std::function<std::optional<double>(std::size_t begin, std::size_t left, std::size_t length)>;

/// Joins the neighbours that make the best-scored piece, the leftmost of equals, until none do.
/// parts: all of the text, in order. Source: Sennrich, Haddow and Birch 2016, arXiv:1508.07909,
/// with scores in place of merge ranks.
std::vector<TextPart> merge_by_score(const std::vector<TextPart>& parts, const PairScore& score);

}  // namespace mulciber
