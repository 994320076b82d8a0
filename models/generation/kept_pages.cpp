#include "models/generation/kept_pages.h"

#include <algorithm>

namespace mulciber {
namespace {

uint32_t common_tokens(std::span<const uint32_t> a, std::span<const uint32_t> b) {
  return static_cast<uint32_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

}  // namespace

KeptPages::KeptPages(uint32_t pages, uint32_t positions, uint32_t reach)
    : pages_(pages), positions_(positions), reach_(std::max(reach, 1u)) {
  for (uint32_t page = pages; page-- > 1;) free_.push_back(page);
  root_.users = 1;
}

std::optional<uint32_t> KeptPages::take() {
  if (free_.empty()) {
    if (idle_.empty()) return std::nullopt;
    free_page(*idle_.begin()->second);
  }
  const uint32_t page = free_.back();
  free_.pop_back();
  return page;
}

void KeptPages::free_page(KeptPage& page) {
  idle_.erase({page.used, &page});
  free_.push_back(std::exchange(page.page, 0));
  KeptPage* last = &page;
  while (last != &root_ && last->page == 0 && last->next.empty()) {
    KeptPage& before = *last->before;
    std::erase_if(before.next, [&](const auto& one) { return one.get() == last; });
    last = &before;
  }
}

KeptPages::Found KeptPages::find(std::span<const uint32_t> text, bool exact, uint32_t step) const {
  Found found;
  const KeptPage* at = &root_;
  std::vector<KeptPage*> path;
  while (at != nullptr) {
    KeptPage* best = nullptr;
    uint32_t most = 0;
    for (const auto& next : at->next) {
      uint32_t tokens = common_tokens(next->tokens, text.subspan(found.tokens));
      if (exact) tokens = std::min(tokens, next->exact);
      if (tokens > most) {
        most = tokens;
        best = next.get();
      }
    }
    if (best != nullptr) {
      if (found.exact == found.tokens) found.exact += std::min(most, best->exact);
      found.tokens += most;
      path.push_back(best);
    }
    at = most == positions_ ? best : nullptr;
  }
  const uint32_t multiple = exact ? step : 1;
  found.tokens -= found.tokens % multiple;
  // Pages that are read behind the prefix must be there. Only the beginning of the last page may
  // be.
  const auto first_read = [&] { return unread(found.tokens - found.tokens % positions_); };
  for (auto i = static_cast<uint32_t>(path.size()); i-- > 0;) {
    if (path[i]->page > 0 || i < first_read() || i * positions_ >= found.tokens) continue;
    found.tokens = i * positions_;
    found.tokens -= found.tokens % multiple;
  }
  found.exact = std::min(found.exact, found.tokens);
  const uint32_t whole = found.tokens / positions_;
  found.part_tokens = found.tokens % positions_;
  if (found.part_tokens > 0) found.part = path[whole]->page;
  path.resize(whole);
  std::fill_n(path.begin(), std::min(first_read(), whole), nullptr);
  found.whole = std::move(path);
  return found;
}

void KeptPages::hold(KeptPage& page) {
  if (page.users++ == 0) idle_.erase({page.used, &page});
}

void KeptPages::release(KeptPage& page) {
  if (--page.users > 0) return;
  page.used = ++clock_;
  idle_.insert({page.used, &page});
}

void KeptPages::forget(KeptPage& page) {
  release(page);
  if (page.users == 0) free_page(page);
}

KeptPage* KeptPages::keep(KeptPage* before, std::span<const uint32_t> tokens, uint32_t exact,
                          uint32_t page) {
  KeptPage& parent = before != nullptr ? *before : root_;
  KeptPage* same = nullptr;
  std::vector<KeptPage*> shorter;
  for (const auto& next : parent.next) {
    const uint32_t common = common_tokens(next->tokens, tokens);
    if (common == tokens.size() && next->exact >= exact && next->page > 0) {
      hold(*next);
      give_back(page);
      return next.get();
    }
    if (common < next->tokens.size()) continue;
    if (common == tokens.size()) {
      same = next.get();
    } else if (next->exact <= exact && next->users == 0 && next->next.empty()) {
      shorter.push_back(next.get());
    }
  }
  if (same != nullptr) {
    // Its users have read other keys and values.
    if (same->users > 0) return nullptr;
    hold(*same);
    const uint32_t other = std::exchange(same->page, page);
    if (other > 0) give_back(other);
    same->exact = exact;
    return same;
  }
  parent.next.push_back(std::make_unique<KeptPage>());
  KeptPage& kept = *parent.next.back();
  kept.before = &parent;
  kept.page = page;
  kept.tokens.assign(tokens.begin(), tokens.end());
  kept.exact = exact;
  kept.users = 1;
  // A shorter version of this page is no longer needed.
  for (KeptPage* one : shorter) free_page(*one);
  return &kept;
}

}  // namespace mulciber
