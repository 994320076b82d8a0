// Pages of a paged KV cache and a prefix tree over them: a node has a page of tokens, so that a
// prefix is stored once and read by all texts that share it. Pages without users stay until they
// are needed for something else. Where all layers have sliding windows, they read nothing of pages
// that lie so far back: such a page may be taken while the tree has others behind it. Nothing here
// uses a device.
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

/// A page that several texts may read. All its tokens follow those of the pages before it.
struct KeptPage {
  KeptPage* before = nullptr;
  /// Number in the pool; 0: the page was taken, but pages that follow it are still there.
  uint32_t page = 0;
  std::vector<uint32_t> tokens;  // fewer than a page has room for: no page follows
  /// How many of the tokens, from the first on, have the keys and values that prefill gives; those
  /// of the others come from decode steps, which round differently.
  uint32_t exact = 0;
  uint32_t users = 0;
  uint64_t used = 0;  // when the last user left
  std::vector<std::unique_ptr<KeptPage>> next;
};

class KeptPages {
 public:
  /// A reach of all positions before a token.
  static constexpr uint32_t kAll = UINT32_MAX;

  /// pages: size of the pool. Page 0 is never given out: values that nobody reads are written
  /// there. positions: tokens of a page. reach: how many positions before a token layers read.
  KeptPages(uint32_t pages, uint32_t positions, uint32_t reach = kAll);

  uint32_t positions() const { return positions_; }
  uint32_t pages() const { return pages_; }
  uint32_t reach() const { return reach_; }
  /// Pages that take() can give: free pages, and kept pages without users.
  uint32_t available() const { return static_cast<uint32_t>(free_.size() + idle_.size()); }
  /// How many pages, from the first on, no token behind the first `tokens` tokens reads.
  uint32_t unread(uint32_t tokens) const {
    return tokens > reach_ ? (tokens - reach_) / positions_ : 0;
  }

  /// Takes a page for one sequence alone: a free page, or else the least recently used one without
  /// users. No value where all pages have users.
  std::optional<uint32_t> take();
  void give_back(uint32_t page) { free_.push_back(page); }

  /// The kept prefix of a text: whole pages, and some tokens of the page after them. nullptr stands
  /// for pages that are not read.
  struct Found {
    std::vector<KeptPage*> whole;
    uint32_t part = 0, part_tokens = 0;  // page of the pool, and its tokens
    uint32_t tokens = 0;
    uint32_t exact = 0;  // how many of them, from the first on, are exact
  };
  /// Finds the longest kept prefix of a text. exact: only tokens that KeptPage::exact counts, in
  /// multiples of `step`.
  Found find(std::span<const uint32_t> text, bool exact, uint32_t step) const;

  void hold(KeptPage& page);
  void release(KeptPage& page);
  /// Releases a page, and frees it where it has no other user.
  void forget(KeptPage& page);
  /// Adds a sequence's page to the tree behind `before` (nullptr: at the root). Returns the page
  /// that holds these tokens from now on, with the sequence as its user: the given one or, where
  /// the tokens were kept already, the page that holds them, and the given one is freed. nullptr:
  /// the page stays the sequence's own.
  KeptPage* keep(KeptPage* before, std::span<const uint32_t> tokens, uint32_t exact, uint32_t page);

 private:
  /// Frees a page without users, and removes nodes without a page behind which none follows.
  void free_page(KeptPage& page);

  uint32_t pages_, positions_, reach_;
  uint64_t clock_ = 0;
  std::vector<uint32_t> free_;
  KeptPage root_;
  /// Pages without users, the least recently used first. A page is released after those that follow
  /// it, so that these are taken first, except where it is too far back to be read.
  std::set<std::pair<uint64_t, KeptPage*>> idle_;
};

}  // namespace mulciber
