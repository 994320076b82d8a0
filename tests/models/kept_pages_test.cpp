// Pages of keys and values: which are found again, which are copied, which are evicted, and that
// none is lost.
#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "models/generation/slot_pages.h"
#include "tests/catch.h"

using namespace mulciber;

namespace {

std::vector<uint32_t> text_of(uint32_t count, uint32_t first = 0) {
  std::vector<uint32_t> text(count);
  for (uint32_t i = 0; i < count; ++i) text[i] = first + i;
  return text;
}

/// Feeds a text as a scheduler does, chunk by chunk. Returns the number of tokens that were cached.
uint32_t take_in(SlotPages& pages, uint32_t slot, const std::vector<uint32_t>& text, uint32_t chunk,
                 bool exact = true) {
  SlotPages::Copy copy;
  const uint32_t held = pages.adopt(slot, std::span(text).first(text.size() - 1), exact, 0, copy);
  for (uint32_t done = held; done < text.size();) {
    const uint32_t first = done;
    done = std::min<uint32_t>(done + chunk, static_cast<uint32_t>(text.size()));
    REQUIRE(pages.reserve(slot, done));
    pages.computed(slot, std::span(text).first(done), first);
  }
  return held;
}

}  // namespace

TEST_CASE("What two texts begin with is stored once") {
  SlotPages pages(3, 21, 4, 4);
  const std::vector<uint32_t> system = text_of(13);
  CHECK(take_in(pages, 0, system, 4) == 0);
  CHECK(pages.available() == 20 - 4);
  std::vector<uint32_t> other = text_of(12);
  other.push_back(99);
  CHECK(pages.needs(std::span(other).first(12), true, 13) == 1);
  CHECK(take_in(pages, 1, other, 4) == 12);
  CHECK(pages.available() == 20 - 5);
  for (uint32_t i = 0; i < 3; ++i) CHECK(pages.table(0)[i] == pages.table(1)[i]);
  CHECK(pages.table(0)[3] != pages.table(1)[3]);
  // Two texts come together: the second finds what the first has computed meanwhile.
  const std::vector<uint32_t> fresh = text_of(9, 500);
  SlotPages::Copy copy;
  CHECK(pages.adopt(2, std::span(fresh).first(8), true, 0, copy) == 0);
  pages.leave(0, system);
  CHECK(take_in(pages, 0, fresh, 4) == 0);
  CHECK(pages.adopt(2, std::span(fresh).first(8), true, 0, copy) == 8);
  CHECK(copy.tokens == 0);
  pages.leave(0, {});
  pages.leave(1, {});
  pages.leave(2, {});
  CHECK(pages.available() == 20);
}

TEST_CASE("Texts that part within a page share what comes before, and get a copy of the page") {
  SlotPages pages(2, 20, 8, 4);
  std::vector<uint32_t> text = text_of(21);
  take_in(pages, 0, text, 4);
  pages.leave(0, text);
  // A text is exact up to the last whole chunk; 8 and 12 tokens end within a page.
  std::vector<uint32_t> other = text_of(14);
  other.push_back(99);
  other.push_back(98);
  SlotPages::Copy copy;
  CHECK(pages.adopt(0, std::span(other).first(15), true, 0, copy) == 12);
  CHECK(copy.tokens == 4);
  CHECK(copy.from != copy.to);
  CHECK(pages.table(0)[1] == copy.to);
  pages.leave(0, {});
  // Generated tokens are found by callers that accept inexact keys.
  std::vector<uint32_t> turn = text_of(21);
  turn.push_back(7);
  CHECK(pages.adopt(0, turn, true, 0, copy) == 20);
  pages.leave(0, {});
  CHECK(pages.adopt(0, turn, false, 0, copy) == 21);
  CHECK(copy.tokens == 5);
  REQUIRE(pages.reserve(0, 22));
  // Tokens after inexact ones are inexact too.
  pages.computed(0, turn, 21);
  pages.leave(0, turn);
  turn.push_back(8);
  CHECK(pages.adopt(0, turn, true, 0, copy) == 20);
  pages.leave(0, {});
  CHECK(pages.adopt(0, turn, false, 0, copy) == 22);
  pages.leave(0, {});
  CHECK(pages.available() == 19);
}

TEST_CASE("What was not used for the longest time is evicted, from its end on") {
  SlotPages pages(1, 9, 4, 4);
  const std::vector<uint32_t> one = text_of(12), two = text_of(12, 100), three = text_of(20, 200);
  take_in(pages, 0, one, 4);
  pages.leave(0, one);
  take_in(pages, 0, two, 4);
  pages.leave(0, two);
  // Use makes `one` the more recent text. 8 of its tokens are found, because the last token is
  // always fed.
  SlotPages::Copy copy;
  CHECK(pages.adopt(0, std::span(one).first(11), true, 0, copy) == 8);
  pages.leave(0, {});
  CHECK(take_in(pages, 0, three, 4) == 0);
  pages.leave(0, three);
  CHECK(pages.adopt(0, one, true, 0, copy) == 8);
  pages.leave(0, {});
  CHECK(pages.adopt(0, two, true, 0, copy) == 4);
  pages.leave(0, {});
  CHECK(pages.adopt(0, three, true, 0, copy) == 20);
  CHECK_FALSE(pages.reserve(0, 40));
  CHECK(pages.held(0) == 5);
  CHECK(pages.reserve(0, 32));
  CHECK(pages.available() == 0);
  pages.leave(0, {});
  CHECK(pages.available() == 8);
}

TEST_CASE("A text leaves pages before its window, and is found by what it reads") {
  // A token reads ten positions before it: a text of 40 tokens reads two pages and a half.
  SlotPages pages(2, 9, 4, 4, 10);
  CHECK(pages.most_pages(12) == 3);
  CHECK(pages.most_pages(4000) == 6);
  std::vector<uint32_t> text;
  for (uint32_t first = 0; first < 40; first += 4) {
    for (uint32_t i = first; i < first + 4; ++i) text.push_back(i);
    if (pages.outgrown(0, first)) pages.let_go(0, first, std::span(text).first(first));
    REQUIRE(pages.reserve(0, first + 4));
    CHECK(pages.held(0) <= pages.most_pages(first + 4));
    pages.computed(0, text, first);
  }
  CHECK(pages.held(0) == 4);
  CHECK(pages.table(0)[5] == 0);
  CHECK(pages.table(0)[6] > 0);
  // The text's first pages were reused for its last ones; the rest is still found.
  SlotPages::Copy copy;
  CHECK(pages.needs(text, true, 44) == 1);
  CHECK(pages.adopt(1, text, true, 0, copy) == 40);
  CHECK(pages.held(1) == 3);
  for (uint32_t i = 7; i < 10; ++i) CHECK(pages.table(1)[i] == pages.table(0)[i]);
  // A text that ends earlier is not found: the pages that it reads are gone.
  pages.leave(0, text);
  CHECK(pages.adopt(0, std::span(text).first(16), true, 0, copy) == 0);
  CHECK(pages.adopt(0, std::span(text).first(36), true, 0, copy) == 36);
  pages.leave(0, {});
  pages.leave(1, {});
  CHECK(pages.available() == 8);
  // A text that is not to be found again lets go of its pages one by one.
  for (uint32_t first = 0; first < 200; ++first) {
    if (pages.outgrown(0, first)) pages.let_go(0, first, {});
    REQUIRE(pages.reserve(0, first + 1));
  }
  CHECK(pages.held(0) <= 4);
  pages.leave(0, {});
  CHECK(pages.available() == 8);
}

TEST_CASE("No page is lost, given twice, or written by one while another reads it") {
  constexpr uint32_t kSlots = 5, kPages = 15, kPage = 4, kChunk = 2;
  for (uint32_t seed = 1; seed <= 8; ++seed) {
    std::mt19937 random(seed);
    // In the last two runs texts read only `reach` positions back.
    const uint32_t reach = seed > 6 ? 2 * seed - 7 : KeptPages::kAll;
    SlotPages pages(kSlots, kPages, kPage, kChunk, reach);
    // The contents of memory: for each position, the text up to it, as a number.
    std::map<std::pair<uint32_t, uint32_t>, std::vector<uint32_t>> memory;
    std::vector<std::vector<uint32_t>> texts(kSlots);
    std::vector<uint32_t> lengths(kSlots);
    std::vector<char> exact(kSlots), busy(kSlots);
    size_t reused = 0, refused = 0;
    const auto place = [&](uint32_t slot, uint32_t position) {
      return std::pair{pages.table(slot)[position / kPage], position % kPage};
    };
    const auto check = [&](uint32_t slot) {
      for (uint32_t i = lengths[slot] - std::min(lengths[slot], reach); i < lengths[slot]; ++i) {
        const std::vector<uint32_t> before(texts[slot].begin(), texts[slot].begin() + i + 1);
        REQUIRE(memory[place(slot, i)] == before);
      }
    };
    const auto adopt = [&](uint32_t slot, size_t most) {
      SlotPages::Copy copy;
      const uint32_t now =
          pages.adopt(slot, std::span(texts[slot]).first(most), exact[slot], lengths[slot], copy);
      for (uint32_t i = 0; i < copy.tokens; ++i)
        memory[{copy.to, i}] = std::vector(memory[{copy.from, i}]);
      reused += now - lengths[slot];
      lengths[slot] = now;
    };
    for (int turn = 0; turn < 4000; ++turn) {
      const uint32_t slot = random() % kSlots;
      if (!busy[slot]) {
        std::vector<uint32_t> text;
        for (uint32_t i = 0, count = 2 + random() % 30; i < count; ++i)
          text.push_back(random() % 10 == 0 ? random() % 3 : i);
        texts[slot] = text;
        lengths[slot] = 0;
        exact[slot] = random() % 2 == 0;
        busy[slot] = true;
        adopt(slot, text.size() - 1);
      } else if (random() % 12 == 0 || lengths[slot] == texts[slot].size()) {
        pages.leave(slot, std::span(texts[slot]).first(lengths[slot]));
        busy[slot] = false;
      } else if (random() % 8 == 0) {
        const uint32_t other = random() % kSlots;
        pages.exchange(slot, other);
        std::swap(texts[slot], texts[other]);
        std::swap(lengths[slot], lengths[other]);
        std::swap(exact[slot], exact[other]);
        std::swap(busy[slot], busy[other]);
      } else {
        adopt(slot, texts[slot].size() - 1);
        const uint32_t first = lengths[slot];
        const auto end = std::min<uint32_t>(first + 1 + random() % kChunk,
                                            static_cast<uint32_t>(texts[slot].size()));
        if (pages.outgrown(slot, first))
          pages.let_go(slot, first, std::span(texts[slot]).first(random() % 8 == 0 ? 0 : first));
        REQUIRE(pages.held(slot) <= pages.most_pages(first + kChunk));
        if (!pages.reserve(slot, end)) {
          ++refused;
          pages.leave(slot, std::span(texts[slot]).first(lengths[slot]));
          busy[slot] = false;
          continue;
        }
        for (uint32_t i = first; i < end; ++i)
          memory[place(slot, i)] = std::vector(texts[slot].begin(), texts[slot].begin() + i + 1);
        lengths[slot] = end;
        pages.computed(slot, std::span(texts[slot]).first(end), first);
      }
      std::set<uint32_t> held;
      for (uint32_t other = 0; other < kSlots; ++other) {
        if (!busy[other]) continue;
        check(other);
        const std::span<const uint32_t> table = pages.table(other);
        for (uint32_t i = 0; i < table.size(); ++i) {
          if (table[i] > 0) {
            held.insert(table[i]);
          } else {
            CHECK((i + 1) * kPage + reach <= lengths[other]);  // no token reads it
          }
        }
      }
      CHECK(pages.available() == kPages - 1 - held.size());
    }
    CHECK(reused > 500);
    if (reach == KeptPages::kAll) CHECK(refused > 10);
    for (uint32_t slot = 0; slot < kSlots; ++slot)
      if (busy[slot]) pages.leave(slot, {});
    CHECK(pages.available() == kPages - 1);
  }
}
