#include "models/generation/batch_draft.h"

#include <algorithm>
#include <utility>

#include "models/core/vocabulary_check.h"
#include "mulciber/error.h"

namespace mulciber {

BatchDraft::BatchDraft(std::shared_ptr<Device> device, std::shared_ptr<const OpenModel> files,
                       GeneratorOptions options, SlotShape shape, const Tokenizer& tokenizer) {
  shared_.device = std::move(device);
  options.load.adapters.clear();
  options.masked_heads.clear();
  options.on_plan = {};
  options.load.on_progress = {};
  options.context = std::min(shape.context, files->architecture().extents().context);
  const ModelOptions loading = shared_.load(std::move(files), options, {}, shape.tokens);
  check_same_tokens(tokenizer, *shared_.tokenizer);
  const DecoderNetwork& network = shared_.language->network();
  if (network.decoder.keeps_states())
    throw ModelError("draft model",
                     "has layers that keep a state, which cannot be taken back when a draft token "
                     "is rejected",
                     "take a draft model with attention");
  shape.context = loading.context;
  // A pass has a length of this list.
  uint32_t chunk = 1;
  for (const uint32_t length : kPassLengths)
    if (length <= shape.context && length <= shape.chunk) chunk = length;
  shape.chunk = chunk;
  const Capabilities& capabilities = shared_.device->capabilities();
  shape = SequenceSlots::bindable(capabilities, network, shape);
  slots_ = std::make_shared<SequenceSlots>(*shared_.device, network, shape, loading.memory_limit);
  begun_.resize(shape.slots);
  predicted_bytes_ = weight_bytes() + SequenceSlots::predict_bytes(capabilities, network, shape);
}

uint32_t BatchDraft::missing(const Sequence& sequence) const {
  const std::span<const uint32_t> held = slots_->tokens(sequence.slot);
  const std::span<const uint32_t> wanted = std::span(sequence.ids).first(sequence.ids.size() - 1);
  const auto common = std::ranges::mismatch(wanted, held).in1 - wanted.begin();
  return static_cast<uint32_t>(wanted.size() - static_cast<size_t>(common));
}

std::vector<std::vector<uint32_t>> BatchDraft::draft(std::span<const Sequence> sequences) {
  std::vector<std::vector<uint32_t>> found(sequences.size());
  std::vector<size_t> drafting;  // numbers of sequences
  std::vector<bool> behind(sequences.size());
  bool fed = false;
  for (size_t i = 0; i < sequences.size(); ++i) {
    const Sequence& sequence = sequences[i];
    if (sequence.ids.size() + sequence.most > slots_->shape().context) continue;
    // The model may have chosen a row that belongs to no token, which the draft model may not have.
    const uint32_t known = shared_.language->network().vocabulary;
    if (std::ranges::any_of(sequence.ids, [&](uint32_t id) { return id >= known; })) continue;
    if (!begun_[sequence.slot]) {
      if (fed) continue;
      LogitBiases biases = sequence.biases;
      std::erase_if(biases, [&](const auto& bias) {
        return bias.first >= shared_.language->network().vocabulary;
      });
      slots_->begin(sequence.slot, {.prompt = sequence.ids,
                                    .exact = false,
                                    .sampling = sequence.sampling,
                                    .stream = sequence.stream,
                                    .biases = biases});
      begun_[sequence.slot] = true;
    }
    uint32_t left = missing(sequence);
    // Where all draft tokens were accepted, one token is missing, which another step feeds.
    if (left > 1 && !fed) {
      const uint32_t part = std::min(left, slots_->shape().chunk);
      slots_->rewrite(sequence.slot, sequence.ids);
      if (!slots_->reserve(sequence.slot, part)) continue;
      slots_->feed(sequence.slot, part, false);
      left -= part;
      fed = true;
    }
    if (left > 1) continue;
    slots_->rewrite(sequence.slot, sequence.ids);
    if (!slots_->reserve(sequence.slot, left + sequence.most)) continue;
    behind[i] = left == 1;
    drafting.push_back(i);
  }
  while (!drafting.empty()) {
    std::vector<uint32_t> slots;
    for (const size_t i : drafting) slots.push_back(sequences[i].slot);
    const std::vector<SequenceSlots::Choice> choices = slots_->step(slots);
    std::vector<size_t> next;
    for (size_t k = 0; k < drafting.size(); ++k) {
      const size_t i = drafting[k];
      if (behind[i]) {
        behind[i] = false;
        slots_->rewrite(sequences[i].slot, sequences[i].ids);
      } else {
        // A vocabulary may be padded with rows that belong to no token.
        if (!choices[k] || *choices[k] >= static_cast<uint32_t>(shared_.tokenizer->vocab_size()))
          continue;
        found[i].push_back(*choices[k]);
        if (found[i].size() >= sequences[i].most) continue;
      }
      next.push_back(i);
    }
    drafting = std::move(next);
  }
  return found;
}

void BatchDraft::exchange(uint32_t a, uint32_t b) {
  if (!begun_[a] && !begun_[b]) return;
  slots_->exchange(a, b);
  const bool of_first = begun_[a];
  begun_[a] = begun_[b];
  begun_[b] = of_first;
}

void BatchDraft::end(uint32_t slot) {
  if (!begun_[slot]) return;
  slots_->end(slot, true);
  begun_[slot] = false;
}

}  // namespace mulciber
