#include "models/translation/batch_search.h"

#include <algorithm>

#include "base/clock.h"

namespace mulciber {
namespace {

// One of so many slots must be free before sources join those under way, because steps pause while
// the state is read and written.
constexpr uint32_t kFreePart = 16;

}  // namespace

BatchSearchResult search_batch(SearchSlots& slots, const GenerationRequest& request) {
  const auto start = Clock::now();
  const auto total = static_cast<uint32_t>(request.sources.size());
  const uint32_t count = slots.count(), enough = std::max(count / kFreePart, 1u);
  BatchSearchResult result;
  result.items.resize(total);
  uint32_t next = 0;
  std::function<void()> on_first_step = request.on_first_token;
  while (next < total || slots.searching() > 0) {
    const uint32_t free = std::min(slots.free(), total - next);
    if (free > 0 && (slots.searching() == 0 || slots.free() >= enough)) {
      std::vector<SlotSource> sources;
      for (; sources.size() < free; ++next) sources.push_back({next, request.sources[next]});
      slots.begin(sources, request.sources.subspan(next));
    }
    // Where sources cannot join a running search, it ends before the next begins.
    uint32_t left = slots.next_smaller();
    if (next < total) left = slots.refills() ? count - enough : 0;
    const bool goes_on =
        slots.run(left, request.settings.max_new_tokens, request.cancel, on_first_step);
    on_first_step = {};
    for (SlotResult& ended : slots.take()) {
      const auto source = static_cast<uint32_t>(ended.number);
      if (ended.not_finite)
        result.not_finite = std::min(result.not_finite.value_or(source), source);
      result.items[source] = std::move(ended.found);
      if (request.on_item && !ended.not_finite) request.on_item(source, result.items[source]);
    }
    result.cancelled = !goes_on;
    if (!goes_on || result.not_finite) break;
  }
  result.seconds = seconds_since(start);
  return result;
}

}  // namespace mulciber
