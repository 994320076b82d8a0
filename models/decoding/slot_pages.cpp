#include "models/decoding/slot_pages.h"

#include <algorithm>

namespace mulciber {

SlotPages::SlotPages(uint32_t slots, uint32_t pages, uint32_t positions, uint32_t chunk)
    : kept_(pages, positions), chunk_(chunk), slots_(slots) {}

uint32_t SlotPages::needs(std::span<const uint32_t> text, bool exact, uint32_t tokens) const {
  const KeptPages::Found found = kept_.find(text, exact, chunk_);
  const auto in_use =
      std::ranges::count_if(found.whole, [](const KeptPage* page) { return page->users > 0; });
  return pages_for(tokens) - static_cast<uint32_t>(in_use);
}

uint32_t SlotPages::adopt(uint32_t slot, std::span<const uint32_t> text, bool exact, uint32_t held,
                          Copy& copy) {
  Slot& to = slots_[slot];
  const KeptPages::Found found = kept_.find(text, exact, chunk_);
  if (found.tokens <= held) return held;
  for (KeptPage* page : found.whole) kept_.hold(*page);
  clear(to);
  to.shared = found.whole;
  for (const KeptPage* page : to.shared) to.table.push_back(page->page);
  to.exact = found.exact;
  if (found.part_tokens == 0) return found.tokens;
  // The page may be the one that is copied from: then nobody else has it any more.
  if (const auto page = kept_.take()) {
    to.table.push_back(*page);
    copy = {found.part, *page, found.part_tokens};
    return found.tokens;
  }
  const auto whole = static_cast<uint32_t>(to.shared.size()) * positions();
  to.exact = std::min(to.exact, whole);
  return whole;
}

bool SlotPages::reserve(uint32_t slot, uint32_t tokens) {
  std::vector<uint32_t>& table = slots_[slot].table;
  const uint32_t needed = pages_for(tokens);
  if (needed <= table.size()) return true;
  if (needed - table.size() > kept_.available()) return false;
  while (table.size() < needed) table.push_back(kept_.take().value());
  return true;
}

void SlotPages::keep(Slot& slot, std::span<const uint32_t> tokens) {
  const uint32_t page = positions();
  for (uint32_t begin = static_cast<uint32_t>(slot.shared.size()) * page; begin < tokens.size();
       begin += page) {
    const auto part = tokens.subspan(begin, std::min<size_t>(page, tokens.size() - begin));
    const uint32_t exact = std::clamp(slot.exact, begin, begin + page) - begin;
    const size_t at = slot.shared.size();
    KeptPage* kept =
        kept_.keep(at > 0 ? slot.shared[at - 1] : nullptr, part,
                   std::min(exact, static_cast<uint32_t>(part.size())), slot.table[at]);
    if (kept == nullptr) return;
    slot.shared.push_back(kept);
    slot.table[at] = kept->page;
  }
}

bool SlotPages::computed(uint32_t slot, std::span<const uint32_t> tokens, uint32_t first) {
  Slot& of = slots_[slot];
  const auto count = static_cast<uint32_t>(tokens.size());
  // What follows tokens of an answer is no more exact than they are.
  if (of.exact != first || count != first + chunk_) return false;
  of.exact = count;
  const std::vector<uint32_t> before = of.table;
  keep(of, tokens.first(count - count % positions()));
  return of.table != before;
}

void SlotPages::leave(uint32_t slot, std::span<const uint32_t> tokens) {
  Slot& of = slots_[slot];
  keep(of, tokens);
  clear(of);
}

void SlotPages::clear(Slot& slot) {
  for (size_t i = slot.shared.size(); i < slot.table.size(); ++i) kept_.give_back(slot.table[i]);
  // The last first: so those at the end of a text give way before those that they follow.
  for (size_t i = slot.shared.size(); i-- > 0;) kept_.release(*slot.shared[i]);
  slot = {};
}

}  // namespace mulciber
