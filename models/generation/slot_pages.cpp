#include "models/generation/slot_pages.h"

#include <algorithm>

namespace mulciber {

SlotPages::SlotPages(uint32_t slots, uint32_t pages, uint32_t positions, uint32_t chunk,
                     uint32_t reach)
    : kept_(pages, positions, reach), chunk_(chunk), slots_(slots) {}

uint32_t SlotPages::most_pages(uint32_t tokens) const {
  // The range that a pass reads and writes may begin and end within a page, and one page more stays
  // when it is the last shared one.
  const uint64_t touched = uint64_t{kept_.reach()} + chunk_ + 2 * (positions() - 1);
  return static_cast<uint32_t>(std::min<uint64_t>(pages_for(tokens), touched / positions() + 1));
}

uint32_t SlotPages::needs(std::span<const uint32_t> text, bool exact, uint32_t tokens) const {
  const KeptPages::Found found = kept_.find(text, exact, chunk_);
  const auto in_use = static_cast<uint32_t>(std::ranges::count_if(
      found.whole, [](const KeptPage* page) { return !page || page->users > 0; }));
  return std::min(most_pages(tokens), pages_for(tokens) - in_use);
}

uint32_t SlotPages::adopt(uint32_t slot, std::span<const uint32_t> text, bool exact, uint32_t held,
                          Copy& copy) {
  Slot& to = slots_[slot];
  const KeptPages::Found found = kept_.find(text, exact, chunk_);
  if (found.tokens <= held) return held;
  for (KeptPage* page : found.whole)
    if (page) kept_.hold(*page);
  clear(to);
  to.shared = found.whole;
  for (const KeptPage* page : to.shared) to.table.push_back(page ? page->page : 0);
  to.gone = static_cast<uint32_t>(std::ranges::count(to.table, 0u));
  to.exact = found.exact;
  if (found.part_tokens == 0) return found.tokens;
  // take() may give the page that is copied from: then nobody else has it any more.
  if (const auto page = kept_.take()) {
    to.table.push_back(*page);
    copy = {found.part, *page, found.part_tokens};
    return found.tokens;
  }
  const auto whole = static_cast<uint32_t>(to.shared.size()) * positions();
  to.exact = std::min(to.exact, whole);
  return whole;
}

bool SlotPages::outgrown(uint32_t slot, uint32_t tokens) const {
  const Slot& of = slots_[slot];
  return last_to_go(of, kept_.unread(tokens)) > of.gone;
}

void SlotPages::let_go(uint32_t slot, uint32_t count, std::span<const uint32_t> tokens) {
  Slot& of = slots_[slot];
  const uint32_t unread = kept_.unread(count);
  keep(of, tokens.first(std::min<size_t>(tokens.size(), uint64_t{unread} * positions())));
  for (const uint32_t end = last_to_go(of, unread); of.gone < end; ++of.gone) {
    if (of.gone < of.shared.size()) {
      kept_.release(*std::exchange(of.shared[of.gone], nullptr));
    } else {
      kept_.give_back(of.table[of.gone]);
    }
    of.table[of.gone] = 0;
  }
}

void SlotPages::keep_read(uint32_t slot, std::span<const uint32_t> tokens) {
  Slot& of = slots_[slot];
  keep(of, tokens);
  const uint32_t end = last_to_go(of, kept_.unread(static_cast<uint32_t>(tokens.size())));
  for (; of.gone < std::min<size_t>(end, of.shared.size()); ++of.gone) {
    kept_.forget(*std::exchange(of.shared[of.gone], nullptr));
    of.table[of.gone] = 0;
  }
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
  if (slot.gone > slot.shared.size()) return;  // no page to follow in the tree
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
  // Tokens behind those of an answer are no more exact than these.
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
  for (size_t i = std::max<size_t>(slot.shared.size(), slot.gone); i < slot.table.size(); ++i)
    kept_.give_back(slot.table[i]);
  // The last page is released first, so that pages at the end of a text are taken before those that
  // they follow.
  for (size_t i = slot.shared.size(); i-- > slot.gone;) kept_.release(*slot.shared[i]);
  slot = {};
}

}  // namespace mulciber
