// A byte trie over the pieces of a vocabulary.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace mulciber {

/// Built once from a set of keys; walked byte by byte from kRoot.
class PieceTrie {
 public:
  static constexpr std::int32_t kRoot = 0;
  static constexpr std::int32_t kNone = -1;

  PieceTrie() = default;
  /// Keys must not be empty, values not negative. For equal keys the highest value counts. The keys
  /// are not stored.
  explicit PieceTrie(std::vector<std::pair<std::string_view, std::int32_t>> entries);

  /// The child of `node` for `byte`, or kNone.
  std::int32_t step(std::int32_t node, unsigned char byte) const;
  /// The value of the key that ends at `node`, or kNone.
  std::int32_t value(std::int32_t node) const { return nodes_[node].value; }

  struct Match {
    std::size_t length = 0;
    std::int32_t value = kNone;
  };
  /// The longest key that `text` starts with; length 0 when there is none.
  Match longest_prefix(std::string_view text) const;

 private:
  struct Node {
    std::int32_t value = kNone;
    std::int32_t first_child = 0;  // children are consecutive, in the order of their bytes
    std::int32_t children = 0;
    unsigned char byte = 0;  // byte of the edge from the parent
  };

  std::vector<Node> nodes_ = {Node{}};
  std::array<std::int32_t, 256> from_root_ = filled();

  static std::array<std::int32_t, 256> filled() {
    std::array<std::int32_t, 256> a;
    a.fill(kNone);
    return a;
  }
};

}  // namespace mulciber
