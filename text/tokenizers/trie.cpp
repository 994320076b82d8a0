#include "text/tokenizers/trie.h"

#include <algorithm>
#include <deque>

namespace mulciber {

PieceTrie::PieceTrie(std::vector<std::pair<std::string_view, std::int32_t>> entries) {
  std::sort(entries.begin(), entries.end());
  struct Range {
    std::int32_t node;
    std::size_t begin, end, depth;  // entries below this node; they share their first `depth` bytes
  };
  // Breadth first, so that the children of a node are adjacent.
  std::deque<Range> pending = {{kRoot, 0, entries.size(), 0}};
  while (!pending.empty()) {
    const Range range = pending.front();
    pending.pop_front();
    std::size_t i = range.begin;
    while (i < range.end && entries[i].first.size() == range.depth)
      nodes_[range.node].value = entries[i++].second;
    nodes_[range.node].first_child = static_cast<std::int32_t>(nodes_.size());
    while (i < range.end) {
      const char byte = entries[i].first[range.depth];
      std::size_t end = i + 1;
      while (end < range.end && entries[end].first[range.depth] == byte) ++end;
      const auto child = static_cast<std::int32_t>(nodes_.size());
      nodes_.push_back({.byte = static_cast<unsigned char>(byte)});
      ++nodes_[range.node].children;
      if (range.node == kRoot) from_root_[static_cast<unsigned char>(byte)] = child;
      pending.push_back({child, i, end, range.depth + 1});
      i = end;
    }
  }
}

std::int32_t PieceTrie::step(std::int32_t node, unsigned char byte) const {
  if (node == kRoot) return from_root_[byte];
  const Node* first = nodes_.data() + nodes_[node].first_child;
  const Node* last = first + nodes_[node].children;
  const Node* found = std::lower_bound(first, last, byte,
                                       [](const Node& n, unsigned char b) { return n.byte < b; });
  return found != last && found->byte == byte ? static_cast<std::int32_t>(found - nodes_.data())
                                              : kNone;
}

PieceTrie::Match PieceTrie::longest_prefix(std::string_view text) const {
  Match best;
  std::int32_t node = kRoot;
  for (std::size_t i = 0; i < text.size(); ++i) {
    node = step(node, static_cast<unsigned char>(text[i]));
    if (node == kNone) break;
    if (value(node) != kNone) best = {i + 1, value(node)};
  }
  return best;
}

}  // namespace mulciber
