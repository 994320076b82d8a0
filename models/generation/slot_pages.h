// The pages of the sequences in slots. A sequence has pages that it shares, and behind them pages
// of its own, to which it writes. It gives back pages that lie too far back to be read. Nothing
// here uses a device.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "models/generation/kept_pages.h"

namespace mulciber {

class SlotPages {
 public:
  /// chunk: tokens of a prefill pass. Keys and values are exact (KeptPage::exact) only where full
  /// passes begin at multiples of it. reach: as in KeptPages.
  SlotPages(uint32_t slots, uint32_t pages, uint32_t positions, uint32_t chunk,
            uint32_t reach = KeptPages::kAll);

  uint32_t positions() const { return kept_.positions(); }
  /// Most pages that a sequence has at once until it has `tokens` tokens.
  uint32_t most_pages(uint32_t tokens) const;
  /// Pages that sequences can still get.
  uint32_t available() const { return kept_.available(); }
  /// How many of these a sequence of `tokens` tokens would take that begins with a text.
  uint32_t needs(std::span<const uint32_t> text, bool exact, uint32_t tokens) const;
  /// Pages of a slot.
  uint32_t held(uint32_t slot) const {
    return static_cast<uint32_t>(slots_[slot].table.size()) - slots_[slot].gone;
  }
  /// Pages by position; 0 where the slot has none any more, because nothing reads it.
  std::span<const uint32_t> table(uint32_t slot) const { return slots_[slot].table; }

  /// The first tokens of a page, to be copied from one page to another.
  struct Copy {
    uint32_t from = 0, to = 0, tokens = 0;
  };
  /// Shares the kept prefix of a text where that is longer than the slot's `held` tokens. Returns
  /// the tokens that the slot holds then. Where they end within a page, the slot gets a copy of
  /// that page (copy on write).
  uint32_t adopt(uint32_t slot, std::span<const uint32_t> text, bool exact, uint32_t held,
                 Copy& copy);
  /// Whether a slot of `tokens` tokens has pages that let_go() would give back.
  bool outgrown(uint32_t slot, uint32_t tokens) const;
  /// Gives back the pages of a slot that no token behind its first `count` tokens reads. tokens:
  /// keys of these tokens, by which the pages are found until they are needed; empty: the pages are
  /// not kept.
  void let_go(uint32_t slot, uint32_t count, std::span<const uint32_t> tokens);
  /// Keeps the pages of these tokens, except those that no token behind them reads: their keys and
  /// values are not known.
  void keep_read(uint32_t slot, std::span<const uint32_t> tokens);
  /// Reserves pages for `tokens` tokens in all; false, without a change, where no page is left.
  bool reserve(uint32_t slot, uint32_t tokens);
  /// Called after a prefill pass over tokens from `first` on: pages that are whole and exact are
  /// shared from now on. Returns whether the slot's table has changed.
  bool computed(uint32_t slot, std::span<const uint32_t> tokens, uint32_t first);
  /// Frees the slot. tokens: keys of those whose keys and values it holds; their pages stay for
  /// others until they are needed.
  void leave(uint32_t slot, std::span<const uint32_t> tokens);
  void exchange(uint32_t a, uint32_t b) { std::swap(slots_[a], slots_[b]); }

 private:
  struct Slot {
    std::vector<KeptPage*> shared;  // nullptr: it was given back
    std::vector<uint32_t> table;    // the shared pages, then the slot's own
    uint32_t gone = 0;              // pages of the table, from the first on, that were given back
    uint32_t exact = 0;             // tokens, from the first on, as in KeptPage::exact
  };
  uint32_t pages_for(uint32_t tokens) const { return (tokens + positions() - 1) / positions(); }
  /// The end of those of the first `unread` pages that a slot can give back: the last shared page
  /// stays, because the next page that is kept stands behind it in the tree.
  static uint32_t last_to_go(const Slot& slot, uint32_t unread) {
    return unread > 0 && unread == slot.shared.size() ? unread - 1 : unread;
  }
  /// Keeps the slot's own pages that hold tokens, in order.
  void keep(Slot& slot, std::span<const uint32_t> tokens);
  void clear(Slot& slot);

  KeptPages kept_;
  uint32_t chunk_;
  std::vector<Slot> slots_;
};

}  // namespace mulciber
