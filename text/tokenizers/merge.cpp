#include "text/tokenizers/merge.h"

#include <cstdint>
#include <queue>

namespace mulciber {

std::vector<TextPart> merge_by_score(const std::vector<TextPart>& parts, const PairScore& score) {
  struct Symbol {
    TextPart part;  // length 0 after it joined its left neighbour
    std::int32_t previous, next;
  };
  std::vector<Symbol> symbols;
  for (const TextPart& part : parts) {
    const auto index = static_cast<std::int32_t>(symbols.size());
    symbols.push_back({part, index - 1, index + 1});
  }
  if (symbols.empty()) return {};
  symbols.back().next = -1;

  struct Pair {
    std::int32_t left, right;
    double score;
    std::size_t length;
    bool operator<(const Pair& other) const {  // the queue's top is the greatest
      return score < other.score || (score == other.score && left > other.left);
    }
  };
  std::priority_queue<Pair> queue;
  const auto consider = [&](std::int32_t left, std::int32_t right) {
    if (left < 0 || right < 0) return;
    const TextPart &a = symbols[left].part, &b = symbols[right].part;
    if (a.frozen || b.frozen) return;
    const std::size_t length = a.length + b.length;
    if (const auto found = score(a.begin, a.length, length))
      queue.push({left, right, *found, length});
  };
  for (std::int32_t i = 1; i < static_cast<std::int32_t>(symbols.size()); ++i) consider(i - 1, i);
  while (!queue.empty()) {
    const Pair top = queue.top();
    queue.pop();
    Symbol &left = symbols[top.left], &right = symbols[top.right];
    const std::size_t length = left.part.length + right.part.length;
    if (left.part.length == 0 || right.part.length == 0 || length != top.length)
      continue;  // the parts have changed since
    left.part.length = length;
    right.part.length = 0;
    left.next = right.next;
    if (right.next >= 0) symbols[right.next].previous = top.left;
    consider(left.previous, top.left);
    consider(top.left, left.next);
  }
  std::vector<TextPart> merged;
  for (std::int32_t i = 0; i >= 0; i = symbols[i].next) merged.push_back(symbols[i].part);
  return merged;
}

}  // namespace mulciber
