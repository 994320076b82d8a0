// The tokens of a sequence and its KV cache or states: truncated, saved and restored.
#include <algorithm>

#include <fmt/format.h>

#include "models/generation/sequence_batch.h"
#include "mulciber/error.h"
#include "runtime/buffer_part.h"
#include "runtime/device_copy.h"
#include "runtime/transfer.h"

namespace mulciber {

void SequenceBatch::truncate(uint32_t row, uint32_t length) {
  if (length >= this->length(row)) return;
  if (!state_.rewinds()) {
    if (row == 0 && kept_length_ > length) kept_length_ = 0;
    length = row == 0 ? kept_length_ : 0;
    if (length > 0) copy_states(false);
  }
  state_.set_length(row, length);
}

void SequenceBatch::copy_states(bool keep) {
  std::vector<DeviceCopy> copies;
  for (size_t layer = 0, number = 0; number < kept_.size(); ++layer) {
    if (state_.caches()[layer].keeps_tokens()) continue;
    const BufferView state = state_.cached(layer, 0, 1),
                     kept = part_of(kept_[number++].view(), 0, state.size);
    copies.push_back(keep ? DeviceCopy{state, kept} : DeviceCopy{kept, state});
  }
  copy(state_.device(), copies);
}

void SequenceBatch::keep_states() {
  if (kept_.empty() || length(0) == 0) return;
  copy_states(true);
  kept_length_ = length(0);
}

std::vector<uint32_t> SequenceBatch::identity() const {
  const std::span<const uint32_t> held = ids(0);
  std::vector<uint32_t> identity(held.begin(), held.end());
  std::copy_n(identity_.begin(), std::min(identity_.size(), held.size()), identity.begin());
  return identity;
}

void SequenceBatch::hold(std::span<const uint32_t> ids) {
  identity_.clear();
  kept_length_ = 0;
  state_.set_length(0, static_cast<uint32_t>(ids.size()));
  state_.words().set(state_.layout().state.history_of(0), ids);
}

SavedSequence SequenceBatch::save(uint32_t row) {
  require_free();
  SavedSequence saved = {{ids(row).begin(), ids(row).end()}, state_.network().cache, {}};
  for (size_t i = 0; !saved.ids.empty() && i < state_.tensors().caches.size(); ++i)
    saved.layers.push_back(download(state_.device(), state_.cached(i, row, length(row))));
  return saved;
}

void SequenceBatch::restore(uint32_t row, const SavedSequence& saved) {
  require_free();
  const auto fail = [](const std::string& problem) {
    throw ModelError("saved sequence", problem,
                     "save it with the same model and storage, or ask for a larger context");
  };
  const auto count = static_cast<uint32_t>(saved.ids.size());
  if (count > shape().context)
    fail(fmt::format("holds {} tokens, there is room for {}", count, shape().context));
  if (count > 0 && (saved.type != state_.network().cache ||
                    saved.layers.size() != state_.tensors().caches.size()))
    fail("is of another model");
  for (size_t i = 0; i < saved.layers.size(); ++i) {
    if (saved.layers[i].size() != state_.cached(i, row, count).size) fail("is of another model");
  }
  kept_length_ = 0;
  if (row == 0) identity_.clear();
  for (size_t i = 0; i < saved.layers.size(); ++i)
    upload(state_.device(), state_.cached(i, row, count), saved.layers[i]);
  state_.set_length(row, count);
  state_.words().set(state_.layout().state.history_of(row), saved.ids);
}

}  // namespace mulciber
