// Which pages the sequences in places have. Those of a sequence are pages that it shares, and
// behind them pages of its own, into which it writes. Those that lie too far back to be read are no
// longer its own. Knows no device.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "models/generation/kept_pages.h"

namespace mulciber {

class SlotPages {
 public:
  /// chunk: tokens of a prompt's passes, from multiples of it on: only so are keys and values exact
  /// (KeptPage::exact). reach: as KeptPages'.
  SlotPages(uint32_t slots, uint32_t pages, uint32_t positions, uint32_t chunk,
            uint32_t reach = KeptPages::kAll);

  uint32_t positions() const { return kept_.positions(); }
  /// Pages that a sequence has at once until it has so many tokens, at most.
  uint32_t most_pages(uint32_t tokens) const;
  /// Pages that sequences can still get.
  uint32_t available() const { return kept_.available(); }
  /// Of those, what a sequence of so many tokens would take that begins with a text.
  uint32_t needs(std::span<const uint32_t> text, bool exact, uint32_t tokens) const;
  /// Pages of a slot.
  uint32_t held(uint32_t slot) const {
    return static_cast<uint32_t>(slots_[slot].table.size()) - slots_[slot].gone;
  }
  /// By position; 0 where the slot has none any more, because nothing reads it.
  std::span<const uint32_t> table(uint32_t slot) const { return slots_[slot].table; }

  /// Tokens of a page that go from one page to another.
  struct Copy {
    uint32_t from = 0, to = 0, tokens = 0;
  };
  /// Takes over what others have left of a text's beginning where that is more than the slot's
  /// `held` tokens. Returns tokens that are there now. Where they end within a page, the slot gets
  /// a copy of that page (copy on write).
  uint32_t adopt(uint32_t slot, std::span<const uint32_t> text, bool exact, uint32_t held,
                 Copy& copy);
  /// Whether a slot of so many tokens has pages that let_go() would leave.
  bool outgrown(uint32_t slot, uint32_t tokens) const;
  /// The slot leaves what no token reads any more that follows its `count` tokens. `tokens`: these,
  /// by which the pages are found while nobody needs them; empty: they are not to be found.
  void let_go(uint32_t slot, uint32_t count, std::span<const uint32_t> tokens);
  /// Room for so many tokens in all; false, and nothing has changed, where no page is left.
  bool reserve(uint32_t slot, uint32_t tokens);
  /// A pass over a prompt has computed its tokens from `first` on: pages that are whole and exact
  /// are others' to read from now on. Returns whether the slot's table is another.
  bool computed(uint32_t slot, std::span<const uint32_t> tokens, uint32_t first);
  /// The slot is free. `tokens`: whose keys and values are there; they stay for others while
  /// nobody needs the pages.
  void leave(uint32_t slot, std::span<const uint32_t> tokens);
  void exchange(uint32_t a, uint32_t b) { std::swap(slots_[a], slots_[b]); }

 private:
  struct Slot {
    std::vector<KeptPage*> shared;  // none: it was let go
    std::vector<uint32_t> table;    // pages of those, then the slot's own
    uint32_t gone = 0;              // of the table, from the first on
    uint32_t exact = 0;             // tokens from the first on, as KeptPage::exact
  };
  uint32_t pages_for(uint32_t tokens) const { return (tokens + positions() - 1) / positions(); }
  /// End of the pages that a slot can let go of `unread` ones: the last that is shared stays, for
  /// what is kept next stands behind it.
  static uint32_t last_to_go(const Slot& slot, uint32_t unread) {
    return unread > 0 && unread == slot.shared.size() ? unread - 1 : unread;
  }
  /// Keeps pages of a slot's own that hold tokens, in order.
  void keep(Slot& slot, std::span<const uint32_t> tokens);
  void clear(Slot& slot);

  KeptPages kept_;
  uint32_t chunk_;
  std::vector<Slot> slots_;
};

}  // namespace mulciber
