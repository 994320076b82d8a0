// Sharing between slots, and their exchange: pages, adapter mixes, states.
#include "models/generation/sequence_slots.h"

#include <algorithm>
#include <utility>

#include "models/core/device_weights.h"
#include "runtime/buffer_part.h"

namespace mulciber {
namespace {

// Ids of tokens, and numbers of other embeddings, are below 2^24. The upper bits of a key are the
// number of an adapter mix. The last number stands for all mixes beyond the others, whose pages are
// not shared.
constexpr uint32_t kTokenBits = 24, kUnsharedMix = 255;
static_assert(1 << kTokenBits == SequenceSlots::kIdentities);

}  // namespace

void SequenceSlots::push_table(uint32_t slot) {
  const uint64_t row = layout_.pages->count / shape_.slots;
  const ControlArray<uint32_t> own = layout_.pages->part(slot * row, row);
  words_.fill(own, 0);
  words_.set(own, pages_.table(slot));
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
  if (mix == kUnsharedMix || network_.decoder.keeps_states()) return keys;
  for (const uint32_t token : tokens) {
    // A token without a number cannot be shared, and then none of these tokens is.
    if (token >= kIdentities) return {};
    keys.push_back(token | mix << kTokenBits);
  }
  return keys;
}

std::vector<uint32_t> SequenceSlots::keys(uint32_t slot, uint32_t tokens) const {
  const auto history = words_.values(layout_.state.history_of(slot).part(0, tokens));
  std::vector<uint32_t> told(history.begin(), history.end());
  const auto count = std::min<size_t>(tokens, identity_[slot].size());
  std::copy_n(identity_[slot].begin(), count, told.begin());
  return keys(told, mix_[slot]);
}

uint32_t SequenceSlots::pages_needed(std::span<const uint32_t> identity,
                                     std::span<const float> adapters, bool exact, uint32_t tokens) {
  return pages_.needs(keys(identity.first(identity.size() - 1), mix_of(adapters)), exact, tokens);
}

uint32_t SequenceSlots::adopt(uint32_t slot) {
  const SampleStateLayout& state = layout_.state;
  const uint32_t held = length(slot);
  // The last token is fed in any case: its logits are needed.
  const uint32_t most = words_.get(state.counts, slot) - 1;
  SlotPages::Copy copy;
  const uint32_t now = pages_.adopt(slot, keys(slot, most), exact_[slot], held, copy);
  if (now == held) return held;
  std::vector<DeviceCopy> copies;
  for (size_t layer = 0; copy.from != copy.to && layer < tensors_.caches.size(); ++layer)
    copies.push_back(
        {part_of_page(layer, copy.from, copy.tokens), part_of_page(layer, copy.to, copy.tokens)});
  if (!copies.empty()) mulciber::copy(device_, copies);
  push_table(slot);
  words_.set(state.positions, slot, now);
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

BufferView SequenceSlots::part_of_page(size_t layer, uint32_t page, uint32_t tokens) const {
  const Tensor& cache = tensors_.caches[layer];
  const uint64_t token_bytes = row_bytes(cache.type, cache.shape.columns());
  return part_of(cache.view, uint64_t{page} * pages_.positions() * token_bytes,
                 tokens * token_bytes);
}

void SequenceSlots::exchange_states(uint32_t a, uint32_t b) {
  std::vector<DeviceCopy> copies;
  for (size_t layer = 0; layer < tensors_.caches.size(); ++layer) {
    if (!network_.decoder.layers[layer].state_space) continue;
    const uint64_t bytes = tensors_.caches[layer].bytes() / shape_.slots;
    const auto of = [&](uint32_t slot) {
      return part_of(tensors_.caches[layer].view, slot * bytes, bytes);
    };
    const BufferView between = part_of(exchanged_.view(), 0, bytes);
    copies.insert(copies.end(), {{of(a), between}, {of(b), of(a)}, {between, of(b)}});
  }
  if (!copies.empty()) mulciber::copy(device_, copies);
}

void SequenceSlots::exchange(uint32_t a, uint32_t b) {
  const SampleStateLayout& state = layout_.state;
  exchange_states(a, b);
  pages_.exchange(a, b);
  std::swap(mix_[a], mix_[b]);
  std::swap(identity_[a], identity_[b]);
  push_table(a);
  push_table(b);
  const auto exchange_words = [&](const auto& array) {
    const auto of_first = words_.get(array, a);
    words_.set(array, a, words_.get(array, b));
    words_.set(array, b, of_first);
  };
  for (const auto& array : {state.positions, state.tokens, state.fed, state.counts, state.stopped})
    exchange_words(array);
  exchange_words(state.settings);
  const SampleStateLayout first = part_of(layout_, a, 1).state,
                          second = part_of(layout_, b, 1).state;
  const auto exchange_lists = [&](const auto& one, const auto& other) {
    const auto values = words_.values(one);
    const std::vector<uint32_t> kept(values.begin(), values.end());
    words_.set(one,
               std::vector<uint32_t>(words_.values(other).begin(), words_.values(other).end()));
    words_.set(other, kept);
  };
  exchange_lists(first.history, second.history);
  if (state.bias_capacity > 0) exchange_lists(first.biases, second.biases);
  if (masked_[a] || masked_[b]) {
    exchange_lists(first.masks, second.masks);
    push(first.masks.word, first.masks.end());
    push(second.masks.word, second.masks.end());
  }
  if (layout_.adapter_scales) {
    const auto scales_of = [&](uint32_t slot) {
      const ControlArray<float> own = *part_of(layout_, slot, 1).adapter_scales;
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
  push_sequence(a);
  push_sequence(b);
  changed_ = true;
}

}  // namespace mulciber
