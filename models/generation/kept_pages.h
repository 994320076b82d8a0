// Pages of a cache of keys and values, and what they hold of texts: a tree of the texts'
// beginnings, a page of tokens to a node, so that a beginning is stored once and read by all who
// share it. Pages that nobody uses stay until they are needed for something else. Where all layers
// have windows, they read nothing of pages that lie so far back: such a page may be taken while the
// tree has others behind it. Knows no device.
// Sources: Kwon et al. 2023, arXiv:2309.06180 (pages); Zheng et al. 2023, arXiv:2312.07104 (tree).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace mulciber {

/// A page that others may read. All its tokens follow those of the pages before it.
struct KeptPage {
  KeptPage* before = nullptr;
  uint32_t page = 0;             // of the pool; 0: it was taken, and pages follow that are there
  std::vector<uint32_t> tokens;  // fewer than the page has room for: nothing follows
  /// How many of them, from the first on, have the keys and values that passes over prompts give;
  /// those of the others come from steps of decoding, which round otherwise.
  uint32_t exact = 0;
  uint32_t users = 0;
  uint64_t used = 0;  // when the last user left
  std::vector<std::unique_ptr<KeptPage>> next;
};

class KeptPages {
 public:
  /// All positions before a token.
  static constexpr uint32_t kAll = UINT32_MAX;

  /// pages: of the pool, of which page 0 is never given: what nobody reads is written there.
  /// positions: of a page. reach: how many positions before a token layers read.
  KeptPages(uint32_t pages, uint32_t positions, uint32_t reach = kAll);

  uint32_t positions() const { return positions_; }
  uint32_t pages() const { return pages_; }
  uint32_t reach() const { return reach_; }
  /// Pages that take() can give: free ones, and those that are kept without users.
  uint32_t available() const { return static_cast<uint32_t>(free_.size() + idle_.size()); }
  /// Pages from the first on of which no token reads anything that follows `tokens`.
  uint32_t unread(uint32_t tokens) const {
    return tokens > reach_ ? (tokens - reach_) / positions_ : 0;
  }

  /// A page for a sequence alone: a free one, or the one kept that was not used for the longest
  /// time. None where all have users.
  std::optional<uint32_t> take();
  void give_back(uint32_t page) { free_.push_back(page); }

  /// What is kept of a text's beginning: whole pages, and of the page after them some tokens. None
  /// stands for pages that are not read.
  struct Found {
    std::vector<KeptPage*> whole;
    uint32_t part = 0, part_tokens = 0;  // page of the pool
    uint32_t tokens = 0;
    uint32_t exact = 0;  // of them, from the first on
  };
  /// exact: tokens that KeptPage::exact counts alone, in multiples of `step`.
  Found find(std::span<const uint32_t> text, bool exact, uint32_t step) const;

  void hold(KeptPage& page);
  void release(KeptPage& page);
  /// Keeps a sequence's page behind those it holds (`before`, none: at the beginning). Returns the
  /// page that holds these tokens from now on, held in the sequence's name: the same one or, where
  /// they were kept already, the other, and the sequence's own is given back. None: it stays the
  /// sequence's own.
  KeptPage* keep(KeptPage* before, std::span<const uint32_t> tokens, uint32_t exact, uint32_t page);

 private:
  /// Frees an idle page, and forgets the tokens of those that nothing follows.
  void free_page(KeptPage& page);

  uint32_t pages_, positions_, reach_;
  uint64_t clock_ = 0;
  std::vector<uint32_t> free_;
  KeptPage root_;
  /// Without users. What follows a page was used last before it, so that it goes first, but where
  /// the page is too far back to be read.
  std::set<std::pair<uint64_t, KeptPage*>> idle_;
};

}  // namespace mulciber
