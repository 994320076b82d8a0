#include "text/tokenizers/charsmap.h"

#include <cstring>

#include "mulciber/error.h"

namespace mulciber {
namespace {

// The fields of a unit in darts-clone's layout.
bool has_leaf(std::uint32_t unit) { return (unit >> 8 & 1) != 0; }
std::uint32_t value_of(std::uint32_t unit) { return unit & 0x7FFFFFFFU; }
std::uint32_t label_of(std::uint32_t unit) { return unit & 0x800000FFU; }
std::uint32_t offset_of(std::uint32_t unit) { return unit >> 10 << ((unit & 0x200U) >> 6); }
bool is_value(std::uint32_t unit) { return unit >> 31 != 0; }

// Children of a node share a block of this many units: if a node's base is in range, so are its
// children.
constexpr std::size_t kBlock = 256;
// Unicode's longest compatibility decomposition takes 33 bytes in UTF-8. Without a bound, a short
// text could grow without limit under a hostile table.
constexpr std::size_t kLongestReplacement = 1024;

}  // namespace

CharsMap::CharsMap(std::string_view blob, const std::string& where) {
  if (blob.empty()) return;
  const auto fail = [&](const std::string& problem) {
    throw ModelError(where, "the normalization table " + problem,
                     "the file is damaged: download it again");
  };
  std::uint32_t trie_bytes = 0;
  if (blob.size() < sizeof trie_bytes) fail("is cut short");
  std::memcpy(&trie_bytes, blob.data(), sizeof trie_bytes);
  blob.remove_prefix(sizeof trie_bytes);
  if (trie_bytes >= blob.size())
    fail("claims a trie of " + std::to_string(trie_bytes) + " bytes, but only " +
         std::to_string(blob.size()) + " follow");
  if (trie_bytes == 0 || trie_bytes % (kBlock * sizeof(std::uint32_t)) != 0)
    fail("has a trie of " + std::to_string(trie_bytes) + " bytes, not a multiple of 1024");
  units_.resize(trie_bytes / sizeof(std::uint32_t));
  std::memcpy(units_.data(), blob.data(), trie_bytes);
  replacements_ = blob.substr(trie_bytes);
  if (replacements_.back() != '\0') fail("has a replacement without end");

  std::vector<bool> long_one(replacements_.size());
  for (std::size_t i = 0, begin = 0; i < replacements_.size(); ++i) {
    if (replacements_[i] != '\0') continue;
    for (; begin + kLongestReplacement < i; ++begin) long_one[begin] = true;
    begin = i + 1;
  }
  for (std::size_t i = 0; i < units_.size(); ++i) {
    if (i != 0 && is_value(units_[i])) continue;  // unreachable: its label matches no byte
    const std::size_t base = i ^ offset_of(units_[i]);
    if (base >= units_.size()) fail("has a trie node that points outside the trie");
    if (!has_leaf(units_[i])) continue;
    const std::uint32_t at = value_of(units_[base]);
    if (at >= replacements_.size()) fail("has a trie node that points outside the replacements");
    if (long_one[at])
      fail("has a replacement longer than " + std::to_string(kLongestReplacement) + " bytes");
  }
}

CharsMap::Match CharsMap::find(std::string_view text, bool longest) const {
  Match match;
  if (units_.empty()) return match;
  std::size_t node = offset_of(units_[0]);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    node ^= byte;
    const std::uint32_t unit = units_[node];
    if (label_of(unit) != byte) break;
    node ^= offset_of(unit);
    if (has_leaf(unit)) {
      match = {i + 1, replacements_.c_str() + value_of(units_[node])};
      if (!longest) break;
    }
  }
  return match;
}

CharsMap::Match CharsMap::longest_prefix(std::string_view text) const { return find(text, true); }
CharsMap::Match CharsMap::shortest_prefix(std::string_view text) const { return find(text, false); }

}  // namespace mulciber
