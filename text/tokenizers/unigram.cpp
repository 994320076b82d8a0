#include "text/tokenizers/unigram.h"

#include <algorithm>
#include <limits>

namespace mulciber {
namespace {

// Both constants are those of SentencePiece.
constexpr double kUnknownPenalty = 10.0;
constexpr double kUserDefinedPenalty = 0.1;

/// Bytes of the character that starts with `lead`, by its first bits.
std::size_t character_length(unsigned char lead) {
  return lead < 0xC0 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
}

constexpr std::size_t kUnreached = std::numeric_limits<std::size_t>::max();

template <typename Score>
struct Best {
  Score score = 0;
  std::size_t begin = kUnreached;
  std::int32_t id = -1;
};

}  // namespace

UnigramModel::UnigramModel(std::span<const Piece> pieces, std::int32_t unknown_id,
                           Precision precision)
    : unknown_id_(unknown_id), precision_(precision) {
  std::vector<std::pair<std::string_view, std::int32_t>> keys;
  double lowest = std::numeric_limits<float>::max();
  highest_score_ = std::numeric_limits<float>::min();
  for (const Piece& piece : pieces) {
    const auto id = static_cast<std::int32_t>(scores_.size());
    scores_.push_back(piece.score);
    types_.push_back(piece.type);
    if (piece.type == PieceType::kNormal) {
      lowest = std::min(lowest, piece.score);
      highest_score_ = std::max(highest_score_, piece.score);
    }
    if (!piece.text.empty() &&
        (piece.type == PieceType::kNormal || piece.type == PieceType::kUserDefined ||
         piece.type == PieceType::kUnused))
      keys.emplace_back(piece.text, id);
  }
  // Rounded like in SentencePiece, so that equal sums stay equal.
  unknown_score_ = precision == Precision::kSingle
                       ? static_cast<float>(lowest) - static_cast<float>(kUnknownPenalty)
                       : lowest - kUnknownPenalty;
  trie_ = PieceTrie(std::move(keys));
}

std::vector<Segment> UnigramModel::segment(std::string_view text) const {
  return precision_ == Precision::kSingle ? viterbi<float>(text) : viterbi<double>(text);
}

template <typename Score>
std::vector<Segment> UnigramModel::viterbi(std::string_view text) const {
  std::vector<Best<Score>> best(text.size() + 1);  // the best path to each byte position
  best[0].begin = 0;
  const auto offer = [&](std::size_t begin, std::size_t end, Score score, std::int32_t id) {
    if (best[end].begin == kUnreached || score > best[end].score) best[end] = {score, begin, id};
  };
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t length =
        std::min(character_length(static_cast<unsigned char>(text[begin])), text.size() - begin);
    const Score so_far = best[begin].score;
    bool covered = false;
    std::int32_t node = PieceTrie::kRoot;
    for (std::size_t end = begin; end < text.size();) {
      node = trie_.step(node, static_cast<unsigned char>(text[end++]));
      if (node == PieceTrie::kNone) break;
      const std::int32_t id = trie_.value(node);
      if (id == PieceTrie::kNone || types_[id] == PieceType::kUnused) continue;
      const double score =
          types_[id] == PieceType::kUserDefined
              ? static_cast<double>(end - begin) * highest_score_ - kUserDefinedPenalty
              : scores_[id];
      offer(begin, end, static_cast<Score>(score) + so_far, id);
      covered |= end - begin == length;
    }
    if (!covered)
      offer(begin, begin + length, static_cast<Score>(unknown_score_) + so_far, unknown_id_);
    begin += length;
  }
  std::vector<Segment> segments;
  for (std::size_t end = text.size(); end > 0; end = best[end].begin)
    segments.push_back({best[end].begin, end, best[end].id});
  std::reverse(segments.begin(), segments.end());
  return segments;
}

}  // namespace mulciber
