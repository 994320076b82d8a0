// Sharing between slots, and their exchange: pages, adapter mixes, states.
#include "models/generation/sequence_slots.h"

#include <algorithm>
#include <utility>

#include "models/core/device_weights.h"
#include "runtime/buffer_part.h"
#include "runtime/device_copy.h"

namespace mulciber {
namespace {

// Ids of tokens, and numbers of other embeddings, are below 2^24. The upper bits of a key are the
// number of an adapter mix. The last number stands for all mixes beyond the others, whose pages are
// not shared.
constexpr uint32_t kTokenBits = 24, kUnsharedMix = 255;
static_assert(1 << kTokenBits == SequenceSlots::kIdentities);

}  // namespace

void SequenceSlots::push_table(uint32_t slot) {
  const uint64_t row = state_.layout().pages->count / shape_.rows();
  const ControlArray<uint32_t> own = state_.layout().pages->part(slot * row, row);
  state_.words().fill(own, 0);
  state_.words().set(own, pages_.table(slot));
  push(own.word, own.end());
}

uint32_t SequenceSlots::mix_of(std::span<const float> adapters) {
  const auto found = std::ranges::find_if(
      mixes_, [&](const std::vector<float>& mix) { return std::ranges::equal(mix, adapters); });
  if (found != mixes_.end()) return static_cast<uint32_t>(found - mixes_.begin());
  if (mixes_.size() == kUnsharedMix) return kUnsharedMix;
  mixes_.emplace_back(adapters.begin(), adapters.end());
  return static_cast<uint32_t>(mixes_.size() - 1);
}

std::vector<uint32_t> SequenceSlots::keys(std::span<const uint32_t> tokens, uint32_t mix) const {
  std::vector<uint32_t> keys;
  if (mix == kUnsharedMix || !state_.rewinds()) return keys;
  for (const uint32_t token : tokens) {
    // A token without a number cannot be shared, and so none behind it.
    if (token >= kIdentities) break;
    keys.push_back(token | mix << kTokenBits);
  }
  return keys;
}

std::vector<uint32_t> SequenceSlots::told(uint32_t slot, uint32_t tokens) const {
  const auto history =
      state_.words().values(state_.layout().state.history_of(slot).part(0, tokens));
  std::vector<uint32_t> told(history.begin(), history.end());
  const auto count = std::min<size_t>(tokens, identity_[slot].size());
  std::copy_n(identity_[slot].begin(), count, told.begin());
  return told;
}

std::vector<uint32_t> SequenceSlots::keys(uint32_t slot, uint32_t tokens) const {
  return keys(told(slot, tokens), mix_[slot]);
}

uint32_t SequenceSlots::pages_needed(std::span<const uint32_t> identity,
                                     std::span<const float> adapters, bool exact, uint32_t tokens) {
  return pages_.needs(keys(identity.first(identity.size() - 1), mix_of(adapters)), exact, tokens);
}

uint32_t SequenceSlots::adopt(uint32_t slot) {
  const SampleStateLayout& state = state_.layout().state;
  const uint32_t held = length(slot);
  if (!reuses_[slot]) return held;
  // The last token is fed in any case: its logits are needed.
  const uint32_t most = state_.words().get(state.counts, slot) - 1;
  SlotPages::Copy copy;
  const uint32_t now = pages_.adopt(slot, keys(slot, most), exact_[slot], held, copy);
  if (now == held) return held;
  std::vector<DeviceCopy> copies;
  for (size_t layer = 0; copy.from != copy.to && layer < state_.caches().size(); ++layer)
    if (state_.caches()[layer].keeps_tokens())
      copies.push_back({state_.cached_in_page(layer, copy.from, copy.tokens),
                        state_.cached_in_page(layer, copy.to, copy.tokens)});
  if (!copies.empty()) {
    settle();
    mulciber::copy(state_.device(), copies);
  }
  push_table(slot);
  state_.words().set(state.positions, slot, now);
  changed_ = true;
  return now;
}

bool SequenceSlots::reserve(uint32_t slot, uint32_t tokens) {
  const uint32_t count = length(slot);
  const bool leaves = pages_.outgrown(slot, count);
  if (leaves) pages_.let_go(slot, count, keys(slot, count));
  const uint32_t held = pages_.held(slot);
  const bool fits = pages_.reserve(slot, count + tokens);
  if (leaves || pages_.held(slot) != held) push_table(slot);
  return fits;
}

void SequenceSlots::exchange_states(uint32_t a, uint32_t b) {
  settle();
  std::vector<DeviceCopy> copies;
  for (size_t layer = 0; layer < state_.caches().size(); ++layer) {
    if (state_.caches()[layer].keeps_tokens()) continue;
    const BufferView of_a = state_.cached(layer, a, 1), of_b = state_.cached(layer, b, 1),
                     between = part_of(exchanged_.view(), 0, of_a.size);
    copies.insert(copies.end(), {{of_a, between}, {of_b, of_a}, {between, of_b}});
  }
  if (!copies.empty()) mulciber::copy(state_.device(), copies);
}

void SequenceSlots::exchange(uint32_t a, uint32_t b) {
  const SampleStateLayout& state = state_.layout().state;
  exchange_states(a, b);
  pages_.exchange(a, b);
  std::swap(mix_[a], mix_[b]);
  std::swap(identity_[a], identity_[b]);
  push_table(a);
  push_table(b);
  const auto exchange_words = [&](const auto& array) {
    const auto of_first = state_.words().get(array, a);
    state_.words().set(array, a, state_.words().get(array, b));
    state_.words().set(array, b, of_first);
  };
  for (const auto& array : {state.positions, state.tokens, state.fed, state.counts, state.stopped})
    exchange_words(array);
  exchange_words(state.settings);
  const SampleStateLayout first = part_of(state_.layout(), a, 1).state,
                          second = part_of(state_.layout(), b, 1).state;
  const auto exchange_lists = [&](const auto& one, const auto& other) {
    const auto values = state_.words().values(one);
    const std::vector<uint32_t> kept(values.begin(), values.end());
    state_.words().set(one, std::vector<uint32_t>(state_.words().values(other).begin(),
                                                  state_.words().values(other).end()));
    state_.words().set(other, kept);
  };
  exchange_lists(first.history, second.history);
  if (state.bias_capacity > 0) exchange_lists(first.biases, second.biases);
  if (masked_[a] || masked_[b]) {
    exchange_lists(first.masks, second.masks);
    push(first.masks.word, first.masks.end());
    push(second.masks.word, second.masks.end());
  }
  if (state_.layout().adapter_scales) {
    const auto scales_of = [&](uint32_t slot) {
      const ControlArray<float> own = *part_of(state_.layout(), slot, 1).adapter_scales;
      return ControlArray<uint32_t>{own.word, own.count};
    };
    exchange_lists(scales_of(a), scales_of(b));
  }
  const auto exchange_flags = [&](std::vector<bool>& flags) {
    const bool of_first = flags[a];
    flags[a] = flags[b];
    flags[b] = of_first;
  };
  exchange_flags(keeps_logits_);
  exchange_flags(masked_);
  exchange_flags(exact_);
  exchange_flags(reuses_);
  exchange_flags(drafts_);
  push_sequence(a);
  push_sequence(b);
  changed_ = true;
}

}  // namespace mulciber
