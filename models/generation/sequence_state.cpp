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
  if (network_.decoder.keeps_states()) {
    if (row == 0 && kept_length_ > length) kept_length_ = 0;
    length = row == 0 ? kept_length_ : 0;
    if (length > 0) copy_states(false);
  }
  words_.set(layout_.state.positions, row, length);
}

void SequenceBatch::copy_states(bool keep) {
  std::vector<DeviceCopy> copies;
  for (size_t i = 0; i < kept_.size(); ++i) {
    const BufferView state = part_of_cache(i, 0, 1), kept = part_of(kept_[i].view(), 0, state.size);
    copies.push_back(keep ? DeviceCopy{state, kept} : DeviceCopy{kept, state});
  }
  copy(device_, copies);
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
  words_.set(layout_.state.positions, 0, static_cast<uint32_t>(ids.size()));
  words_.set(layout_.state.history_of(0), ids);
}

std::span<const uint32_t> SequenceBatch::ids(uint32_t row) const {
  return words_.values(layout_.state.history_of(row)).first(length(row));
}

BufferView SequenceBatch::part_of_cache(size_t layer, uint32_t row, uint32_t tokens) const {
  const Tensor& cache = tensors_.caches[layer];
  const uint64_t token_bytes = row_bytes(cache.type, cache.shape.columns());
  if (network_.decoder.layers[layer].state_space) tokens = std::min(tokens, 1u);
  return part_of(cache.view, row * cache.shape[1] * token_bytes, tokens * token_bytes);
}

SavedSequence SequenceBatch::save(uint32_t row) {
  require_free();
  SavedSequence saved = {{ids(row).begin(), ids(row).end()}, network_.cache, {}};
  for (size_t i = 0; !saved.ids.empty() && i < tensors_.caches.size(); ++i)
    saved.layers.push_back(download(device_, part_of_cache(i, row, length(row))));
  return saved;
}

void SequenceBatch::restore(uint32_t row, const SavedSequence& saved) {
  require_free();
  const auto fail = [](const std::string& problem) {
    throw ModelError("saved sequence", problem,
                     "save it with the same model and storage, or ask for a larger context");
  };
  const auto count = static_cast<uint32_t>(saved.ids.size());
  if (count > shape_.context)
    fail(fmt::format("holds {} tokens, there is room for {}", count, shape_.context));
  if (count > 0 && (saved.type != network_.cache || saved.layers.size() != tensors_.caches.size()))
    fail("is of another model");
  for (size_t i = 0; i < saved.layers.size(); ++i) {
    if (saved.layers[i].size() != part_of_cache(i, row, count).size) fail("is of another model");
  }
  kept_length_ = 0;
  if (row == 0) identity_.clear();
  for (size_t i = 0; i < saved.layers.size(); ++i)
    upload(device_, part_of_cache(i, row, count), saved.layers[i]);
  words_.set(layout_.state.positions, row, count);
  words_.set(layout_.state.history_of(row), saved.ids);
}

}  // namespace mulciber
