#include "text/tokenizers/bpe.h"

#include <algorithm>
#include <queue>

#include "checkpoints/json.h"
#include "mulciber/error.h"
#include "text/tokenizers/text.h"

namespace mulciber {

BpeModel::BpeModel(const Vocabulary& vocabulary, const std::vector<Merge>& merges, Options options,
                   const std::string& where)
    : vocabulary_(vocabulary), options_(std::move(options)) {
  merges_.reserve(merges.size());
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    const auto& [left, right] = merges[rank];
    const auto find = [&, &left = left, &right = right](const std::string& piece) {
      const auto id = vocabulary_.find(piece);
      if (!id)
        throw ModelError(where,
                         "merge " + std::to_string(rank) + " ('" + printable(left) + "' and '" +
                             printable(right) + "') needs the piece '" + printable(piece) +
                             "', which the vocabulary lacks",
                         "merges and vocabulary are from different files: download both again");
      return *id;
    };
    const std::string& prefix = options_.continuing_prefix;
    const std::string tail =
        !prefix.empty() && right.starts_with(prefix) ? right.substr(prefix.size()) : right;
    const std::uint64_t pair = key(find(left), find(right));
    merges_[pair] = {static_cast<std::int32_t>(rank), find(left + tail)};
  }
}

std::vector<std::int32_t> BpeModel::characters(std::string_view word) const {
  std::vector<std::int32_t> ids;
  bool pending_unknown = false;
  const auto flush = [&] {
    if (pending_unknown) ids.push_back(*options_.unknown_id);
    pending_unknown = false;
  };
  std::string piece;
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t length = std::max<std::size_t>(1, first_code_point(word.substr(at)).length);
    piece = at == 0 ? std::string() : options_.continuing_prefix;
    piece += word.substr(at, length);
    at += length;
    if (at == word.size()) piece += options_.end_suffix;
    if (const auto id = vocabulary_.find(piece)) {
      flush();
      ids.push_back(*id);
      continue;
    }
    if (options_.byte_fallback) {
      std::vector<std::int32_t> bytes;
      for (const char byte : piece)
        if (const auto id = vocabulary_.find(piece_of_byte(static_cast<unsigned char>(byte))))
          bytes.push_back(*id);
      if (bytes.size() == piece.size()) {
        flush();
        ids.insert(ids.end(), bytes.begin(), bytes.end());
        continue;
      }
    }
    if (!options_.unknown_id) continue;
    if (!options_.fuse_unknown) flush();
    pending_unknown = true;
  }
  flush();
  return ids;
}

void BpeModel::tokenize(std::string_view word, std::vector<std::int32_t>& ids) const {
  if (word.empty()) return;
  if (options_.ignore_merges) {
    if (const auto id = vocabulary_.find(word)) {
      ids.push_back(*id);
      return;
    }
  }
  struct Symbol {
    std::int32_t id, previous, next;
    bool gone;
  };
  std::vector<Symbol> symbols;
  for (const std::int32_t id : characters(word)) {
    const auto index = static_cast<std::int32_t>(symbols.size());
    symbols.push_back({id, index - 1, index + 1, false});
  }
  if (symbols.empty()) return;
  symbols.back().next = -1;

  struct Candidate {
    Result merge;
    std::int32_t left;
    bool operator<(const Candidate& other) const {  // the queue's top is the greatest
      return merge.rank > other.merge.rank || (merge.rank == other.merge.rank && left > other.left);
    }
  };
  std::priority_queue<Candidate> queue;
  const auto merge_of = [&](std::int32_t left) -> const Result* {
    if (left < 0 || symbols[left].gone || symbols[left].next < 0) return nullptr;
    const auto it = merges_.find(key(symbols[left].id, symbols[symbols[left].next].id));
    return it == merges_.end() ? nullptr : &it->second;
  };
  const auto consider = [&](std::int32_t left) {
    if (const Result* merge = merge_of(left)) queue.push({*merge, left});
  };
  for (std::int32_t i = 0; i + 1 < static_cast<std::int32_t>(symbols.size()); ++i) consider(i);
  while (!queue.empty()) {
    const Candidate top = queue.top();
    queue.pop();
    const Result* merge = merge_of(top.left);
    if (merge == nullptr || merge->id != top.merge.id) continue;  // a neighbour has changed since
    Symbol& left = symbols[top.left];
    Symbol& right = symbols[left.next];
    left.id = merge->id;
    left.next = right.next;
    right.gone = true;
    if (left.next >= 0) symbols[left.next].previous = top.left;
    consider(left.previous);
    consider(top.left);
  }
  for (std::int32_t i = 0; i >= 0; i = symbols[i].next) ids.push_back(symbols[i].id);
}

void WordPieceModel::tokenize(std::string_view word, std::vector<std::int32_t>& ids) const {
  if (count_code_points(word) > options_.longest_word) {
    ids.push_back(options_.unknown_id);
    return;
  }
  const std::size_t first = ids.size();
  std::string piece;
  for (std::size_t begin = 0; begin < word.size();) {
    std::size_t end = word.size();
    for (;; --end) {
      while (end > begin && end < word.size() &&
             (static_cast<unsigned char>(word[end]) & 0xC0) == 0x80)
        --end;
      if (end == begin) {
        ids.resize(first);
        ids.push_back(options_.unknown_id);
        return;
      }
      piece = begin == 0 ? std::string() : options_.continuing_prefix;
      piece += word.substr(begin, end - begin);
      if (const auto id = vocabulary_.find(piece)) {
        ids.push_back(*id);
        break;
      }
    }
    begin = end;
  }
}

}  // namespace mulciber
