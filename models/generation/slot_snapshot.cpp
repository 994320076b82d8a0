// Sequences of slots outside of them: saved, restored, and states that stay between two sequences.
#include <algorithm>

#include <fmt/format.h>

#include "models/generation/sequence_slots.h"
#include "mulciber/error.h"
#include "runtime/buffer_part.h"
#include "runtime/device_copy.h"
#include "runtime/transfer.h"

namespace mulciber {

void SequenceSlots::adopt_state(uint32_t slot) {
  const uint32_t count = state_.words().get(state_.layout().state.counts, slot);
  const std::vector<uint32_t> prompt = told(slot, count);
  const auto begins = [&](const std::optional<KeptState>& state) {
    return state && reuses_[slot] && !exact_[slot] && state->mix == mix_[slot] &&
           state->told.size() < count &&
           std::ranges::equal(state->told, std::span(prompt).first(state->told.size()));
  };
  if (begins(left_)) {
    state_.set_length(slot, static_cast<uint32_t>(left_->told.size()));
  } else if (begins(kept_)) {
    copy_states(false);
    state_.set_length(slot, static_cast<uint32_t>(kept_->told.size()));
  } else {
    pages_.leave(slot, {});
  }
  if (!begins(kept_)) kept_.reset();
  left_.reset();
  push_table(slot);
}

void SequenceSlots::copy_states(bool keep) {
  settle();
  std::vector<DeviceCopy> copies;
  for (size_t layer = 0, number = 0; number < kept_states_.size(); ++layer) {
    if (state_.caches()[layer].keeps_tokens()) continue;
    const BufferView state = state_.cached(layer, 0, 1),
                     kept = part_of(kept_states_[number++].view(), 0, state.size);
    copies.push_back(keep ? DeviceCopy{state, kept} : DeviceCopy{kept, state});
  }
  copy(state_.device(), copies);
  if (!keep) return;
  kept_ = KeptState{told(0, length(0)), mix_[0]};
  // Tokens without a number are like no others.
  if (std::ranges::any_of(kept_->told, [](uint32_t token) { return token >= kIdentities; }))
    kept_.reset();
}

std::vector<BufferView> SequenceSlots::memory_of(size_t layer, uint32_t slot,
                                                 uint32_t tokens) const {
  if (!state_.caches()[layer].keeps_tokens()) return {state_.cached(layer, slot, tokens)};
  std::vector<BufferView> views;
  const uint32_t page = pages_.positions();
  for (uint32_t first = 0; first < tokens; first += page)
    views.push_back(state_.cached_in_page(layer, pages_.table(slot)[first / page],
                                          std::min(page, tokens - first)));
  return views;
}

SavedSequence SequenceSlots::save(uint32_t slot) {
  require_free();
  settle();
  const std::span<const uint32_t> ids = tokens(slot);
  SavedSequence saved = {{ids.begin(), ids.end()}, state_.network().cache, {}};
  for (size_t layer = 0; !ids.empty() && layer < state_.caches().size(); ++layer) {
    std::vector<std::byte>& bytes = saved.layers.emplace_back();
    // Pages that were given back, because nothing reads them, are page 0.
    for (const BufferView& part : memory_of(layer, slot, length(slot))) {
      const std::vector<std::byte> more = download(state_.device(), part);
      bytes.insert(bytes.end(), more.begin(), more.end());
    }
  }
  return saved;
}

void SequenceSlots::restore(uint32_t slot, const SavedSequence& saved,
                            std::span<const float> adapters) {
  require_free();
  settle();
  const auto fail = [](const std::string& problem) {
    throw ModelError("saved sequence", problem,
                     "save it with the same model and storage, or ask for a larger context");
  };
  const auto count = static_cast<uint32_t>(saved.ids.size());
  if (count > shape_.context)
    fail(fmt::format("holds {} tokens, there is room for {}", count, shape_.context));
  if (count == 0) return;
  if (!state_.rewinds() && !keeps_states())
    fail("holds the states of layers, which one slot alone keeps");
  if (saved.type != state_.network().cache || saved.layers.size() != state_.caches().size())
    fail("is of another model");
  std::vector<uint32_t> prompt = saved.ids;
  prompt.push_back(0);  // the last token of a prompt is never in the cache
  begin(slot, {.prompt = prompt, .exact = false, .reuses = false, .adapters = adapters});
  if (!reserve(slot, count)) {
    end(slot, false);
    throw ModelError("saved sequence", "finds no free page", "end a sequence before");
  }
  for (size_t layer = 0; layer < saved.layers.size(); ++layer) {
    uint64_t size = 0;
    for (const BufferView& part : memory_of(layer, slot, count)) size += part.size;
    if (saved.layers[layer].size() == size) continue;
    end(slot, false);
    fail("is of another model");
  }
  for (size_t layer = 0; layer < saved.layers.size(); ++layer) {
    std::span<const std::byte> bytes = saved.layers[layer];
    for (const BufferView& part : memory_of(layer, slot, count)) {
      upload(state_.device(), part, bytes.first(part.size));
      bytes = bytes.subspan(part.size);
    }
  }
  state_.set_length(slot, count);
  pages_.keep_read(slot, keys(slot, count));
  end(slot, true);
}

}  // namespace mulciber
