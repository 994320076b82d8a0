#include "models/decoding/sequence_slots.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "models/decoding/not_finite.h"
#include "models/decoding/sequence_run.h"
#include "models/device_weights.h"

namespace mulciber {
namespace {

// Recordings; all work in one arena.
constexpr size_t kRecordingsKept = 96;
// Where a descriptor may begin on every device; buffers are whole multiples of it.
constexpr uint64_t kSlotAlignment = 256;

/// Tokens that the caches have room for, so that every sequence begins where a descriptor may.
uint32_t padded_context(const DecoderNetwork& network, uint32_t context) {
  uint64_t step = 1;
  for (const CausalLayer& layer : network.decoder.layers) {
    const Tensor cache = layer.cache(1, 1, network.cache);
    const uint64_t bytes = row_bytes(cache.type, cache.shape.columns());
    step = std::lcm(step, kSlotAlignment / std::gcd(kSlotAlignment, bytes));
  }
  return static_cast<uint32_t>((context + step - 1) / step * step);
}

/// Room for a sequence's part of a layer's cache.
uint64_t exchange_bytes(const SlotShape& shape, const BatchTensors& tensors) {
  uint64_t most = 0;
  for (const Tensor& cache : tensors.caches) most = std::max(most, cache.bytes() / shape.slots);
  return shape.slots > 1 ? most : 0;
}

}  // namespace

BatchLayout SequenceSlots::plan(const DecoderNetwork& network, const SlotShape& shape) {
  return plan_batch(network, {shape.slots, shape.context, shape.biases}, shape.chunk);
}

BatchTensors SequenceSlots::shapes(const DecoderNetwork& network, const SlotShape& shape,
                                   const BatchLayout& layout) {
  return batch_tensor_shapes(network, {shape.slots, padded_context(network, shape.context)},
                             layout);
}

PassTensors SequenceSlots::add_nodes(ProgramBuilder& builder, const DecoderNetwork& network,
                                     const BatchLayout& layout, const BatchTensors& tensors,
                                     const SlotShape& shape, const Pass& pass) {
  // A part of a prompt is always one sequence's: nothing of it could depend on others.
  if (!pass.prompt) builder.select_as(pass.slots, shape.slots);
  return build_decoder_pass(builder, network, part_of(layout, pass.first, pass.slots),
                            part_of(tensors, pass.first, pass.slots), pass.pass);
}

uint64_t SequenceSlots::arena_bytes(const Capabilities& device, const DecoderNetwork& network,
                                    const SlotShape& shape, const BatchLayout& layout,
                                    const BatchTensors& tensors) {
  uint64_t most = 0;
  for (const Pass& pass : {Pass{0, shape.slots, false, {.length = 1, .raw_logits = true}},
                           Pass{0, 1, true, {.length = shape.chunk, .raw_logits = true}}}) {
    ProgramBuilder builder(device, "plan");
    add_nodes(builder, network, layout, tensors, shape, pass);
    most = std::max(most, builder.plan().arena_bytes);
  }
  return most;
}

SequenceSlots::SequenceSlots(Device& device, const DecoderNetwork& network, const SlotShape& shape,
                             uint64_t memory_limit)
    : device_(device), network_(network), shape_(shape), layout_(plan(network, shape)) {
  require_memory(device, predict_bytes(device.capabilities(), network, shape), memory_limit,
                 fmt::format("a context of {} x {} tokens", shape.slots, shape.context));
  tensors_ = shapes(network, shape, layout_);
  const auto allocate = [&](Tensor& tensor, MemoryUsage use) {
    Buffer buffer = device.memory().allocate(tensor.bytes(), use);
    tensor = buffer.tensor(tensor.shape, tensor.type);
    return buffer;
  };
  control_ = allocate(tensors_.control, MemoryUsage::kActivations);
  progress_ = allocate(tensors_.progress, MemoryUsage::kReadback);
  for (Tensor& cache : tensors_.caches)
    cache_buffers_.push_back(allocate(cache, MemoryUsage::kActivations));
  arena_ = device.memory().allocate(
      arena_bytes(device.capabilities(), network, shape, layout_, tensors_),
      MemoryUsage::kActivations);
  for (const Tensor& cache : tensors_.caches)
    if (keeps_states())
      kept_.push_back(device.memory().allocate(cache.bytes(), MemoryUsage::kActivations));
  if (const uint64_t bytes = exchange_bytes(shape, tensors_))
    exchanged_ = device.memory().allocate(bytes, MemoryUsage::kActivations);
  keeps_logits_.resize(shape.slots);
  masked_.resize(shape.slots);
  words_ = initial_words(network, layout_);
  words_.fill(layout_.state.stopped, SAMPLE_IDLE);
  upload(device, control_.view(), words_.bytes());
}

uint64_t SequenceSlots::predict_bytes(const Capabilities& device, const DecoderNetwork& network,
                                      const SlotShape& shape) {
  const BatchLayout layout = plan(network, shape);
  const BatchTensors tensors = shapes(network, shape, layout);
  uint64_t bytes = 0;
  const auto add = [&](uint64_t of_buffer) {
    bytes += (of_buffer + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment;
  };
  add(tensors.control.bytes());
  add(tensors.progress.bytes());
  add(arena_bytes(device, network, shape, layout, tensors));
  for (const Tensor& cache : tensors.caches) {
    add(cache.bytes());
    if (network.decoder.keeps_states()) add(cache.bytes());
  }
  add(exchange_bytes(shape, tensors));
  return bytes;
}

SequenceSlots::Built& SequenceSlots::built(const Pass& pass) {
  const auto found = std::ranges::find(programs_, pass, &Built::pass);
  if (found != programs_.end()) {
    programs_.splice(programs_.begin(), programs_, found);
    return programs_.front();
  }
  const auto start = Clock::now();
  if (programs_.size() >= kRecordingsKept) programs_.pop_back();
  ProgramBuilder builder(device_, pass.prompt ? "prefill" : "decode step");
  const PassTensors kept = add_nodes(builder, network_, layout_, tensors_, shape_, pass);
  // Those that were not planned for are smaller, unless splits of sums need room of their own.
  const bool fits = builder.plan().arena_bytes <= arena_.size();
  programs_.push_front({pass, builder.build(fits ? arena_.view() : BufferView{}), kept});
  build_seconds_ += seconds_since(start);
  return programs_.front();
}

void SequenceSlots::push(uint64_t first, uint64_t end) {
  BufferView view = control_.view();
  const uint64_t begin = first * sizeof(uint32_t);
  view.offset += begin;
  view.size = end * sizeof(uint32_t) - begin;
  if (view.mapped) view.mapped += begin;
  upload(device_, view, words_.bytes().subspan(begin, view.size));
}

void SequenceSlots::push_sequence(uint32_t slot) {
  const SampleStateLayout state = part_of(layout_, slot, 1).state;
  push(state.history.word, state.history.end());
  if (state.bias_capacity > 0) push(state.biases.word, state.biases.end());
}

void SequenceSlots::set_mask(uint32_t slot, std::span<const uint32_t> mask) {
  if (mask.empty() && !masked_[slot]) return;
  mulciber::set_mask(words_, layout_.state, slot, mask);
  masked_[slot] = !mask.empty();
  const ControlArray<uint32_t> own = layout_.state.mask_of(slot);
  push(own.word, own.word + 1 + mask.size());
}

void SequenceSlots::run(const Pass& pass) {
  Program& program = built(pass).program;
  // What changes stands before the history, which is written when a sequence begins.
  if (std::exchange(changed_, false)) push(0, layout_.state.history.word);
  program.run();
}

void SequenceSlots::begin(uint32_t slot, const SlotSequence& sequence) {
  const SampleStateLayout& state = layout_.state;
  // What ends a sequence, the host looks at.
  words_.set(state.settings, slot,
             sample_settings({.sampling = sequence.sampling, .stream = sequence.stream}));
  words_.set(state.positions, slot, sequence.held);
  words_.set(state.counts, slot, static_cast<uint32_t>(sequence.prompt.size()));
  words_.set(state.stopped, slot, SAMPLE_IDLE);
  words_.set(state.fed, slot, 0);
  words_.set(state.history_of(slot), sequence.prompt);
  if (keeps_states() && sequence.held > 0) copy(slot, slot, 0, sequence.held);
  set_biases(words_, state, slot, sequence.biases);
  push_sequence(slot);
  set_mask(slot, {});
  keeps_logits_[slot] = sequence.keeps_logits;
  changed_ = true;
}

uint32_t SequenceSlots::pass_tokens(uint32_t held, uint32_t tokens) const {
  return pass_length(tokens, shape_.chunk, cache_room(tensors_, network_) - held);
}

SequenceSlots::Choice SequenceSlots::feed(uint32_t slot, uint32_t count, bool chooses) {
  const SampleStateLayout& state = layout_.state;
  const uint32_t held = length(slot);
  const uint32_t tokens = pass_tokens(held, count);
  const Pass pass = {slot,
                     1,
                     true,
                     {.length = tokens,
                      .result = chooses ? PassOutput::kChoice : PassOutput::kCache,
                      .raw_logits = chooses && keeps_logits_[slot]}};
  const std::span<const uint32_t> ids = words_.values(state.history_of(slot).part(held, count));
  const std::vector<uint32_t> fed(ids.begin(), ids.end());
  words_.set(part_of(layout_, slot, 1).fed_ids(0, tokens), fed);
  words_.set(layout_.last, slot, count - 1);
  words_.set(state.fed, slot, count);
  words_.set(state.stopped, slot, chooses ? SAMPLE_RUNNING : SAMPLE_IDLE);
  changed_ = true;
  run(pass);
  if (chooses) return take_choice(pass, slot);
  words_.set(state.positions, slot, held + count);
  words_.set(state.fed, slot, 0);  // steps of others leave it as it is
  changed_ = true;
  return std::nullopt;
}

SequenceSlots::Choice SequenceSlots::take_choice(const Pass& pass, uint32_t slot) {
  const SampleStateLayout& state = layout_.state;
  const SampleStateLayout seen = part_of(layout_, pass.first, pass.slots).state;
  const auto* shown = reinterpret_cast<const volatile uint32_t*>(progress_.view().mapped);
  const uint32_t row = slot - pass.first;
  // The same steps as the kernel's.
  if (shown[seen.progress_stopped(row)] == SAMPLE_NOT_FINITE) {
    words_.set(state.stopped, slot, SAMPLE_IDLE);
    changed_ = true;
    return std::nullopt;
  }
  const uint32_t count = words_.get(state.counts, slot);
  const uint32_t id = shown[seen.progress_token(row, count)];
  words_.set(state.tokens, slot, id);
  words_.set(state.positions, slot, length(slot) + words_.get(state.fed, slot));
  words_.set(state.fed, slot, 1);
  words_.set(state.history_of(slot), count % state.history_capacity, id);
  words_.set(state.counts, slot, count + 1);
  return id;
}

std::vector<SequenceSlots::Choice> SequenceSlots::step(std::span<const uint32_t> slots) {
  const uint32_t highest = *std::ranges::max_element(slots);
  const bool raw = std::ranges::any_of(slots, [&](uint32_t slot) { return keeps_logits_[slot]; });
  const Pass pass = {0,
                     std::min(std::bit_ceil(highest + 1), shape_.slots),
                     false,
                     {.length = 1, .raw_logits = raw}};
  run(pass);
  std::vector<Choice> choices;
  for (const uint32_t slot : slots) choices.push_back(take_choice(pass, slot));
  return choices;
}

std::vector<float> SequenceSlots::logits(uint32_t slot) const {
  const Built& last = programs_.front();
  const Tensor row = last.kept.raw_logits.row_slice(slot - last.pass.first, 1);
  return download_as<float>(device_, last.program.view(row));
}

void SequenceSlots::end(uint32_t slot, uint32_t length) {
  const SampleStateLayout& state = layout_.state;
  const bool whole = length >= this->length(slot);
  words_.set(state.stopped, slot, SAMPLE_IDLE);
  words_.set(state.fed, slot, 0);
  if (!whole) words_.set(state.positions, slot, length);
  changed_ = true;
}

BufferView SequenceSlots::part_of_cache(size_t layer, uint32_t slot, uint32_t first,
                                        uint32_t end) const {
  const Tensor& cache = tensors_.caches[layer];
  const uint64_t token_bytes = row_bytes(cache.type, cache.shape.columns());
  if (network_.decoder.layers[layer].state_space) {
    end = first < end ? 1 : 0;
    first = 0;
  }
  BufferView part = cache.view;
  part.offset += (slot * cache.shape[1] + first) * token_bytes;
  part.size = (end - first) * token_bytes;
  return part;
}

BufferView SequenceSlots::kept_state(size_t layer, uint32_t slot) const {
  BufferView kept = kept_[layer].view();
  kept.size = part_of_cache(layer, slot, 0, 1).size;
  kept.offset += slot * kept.size;
  return kept;
}

void SequenceSlots::keep(uint32_t slot) {
  std::vector<DeviceCopy> copies;
  for (size_t layer = 0; layer < kept_.size(); ++layer)
    copies.push_back({part_of_cache(layer, slot, 0, 1), kept_state(layer, slot)});
  if (!copies.empty()) mulciber::copy(device_, copies);
}

void SequenceSlots::copy(uint32_t from, uint32_t to, uint32_t first, uint32_t end) {
  std::vector<DeviceCopy> copies;
  for (size_t layer = 0; first < end && layer < tensors_.caches.size(); ++layer) {
    const BufferView into = part_of_cache(layer, to, first, end);
    copies.push_back(
        {kept_.empty() ? part_of_cache(layer, from, first, end) : kept_state(layer, from), into});
    if (!kept_.empty() && from != to) copies.push_back({into, kept_state(layer, to)});
  }
  mulciber::copy(device_, copies);
  words_.set(layout_.state.positions, to, end);
  changed_ = true;
}

void SequenceSlots::exchange(uint32_t a, uint32_t b) {
  const SampleStateLayout& state = layout_.state;
  const uint32_t of_a = length(a), of_b = length(b);
  std::vector<DeviceCopy> copies;
  for (size_t layer = 0; layer < tensors_.caches.size(); ++layer) {
    const auto add = [&](BufferView from, BufferView to) {
      to.size = from.size;
      if (from.size > 0) copies.push_back({from, to});
    };
    add(part_of_cache(layer, a, 0, of_a), exchanged_.view());
    add(part_of_cache(layer, b, 0, of_b), part_of_cache(layer, a, 0, of_b));
    BufferView back = exchanged_.view();
    back.size = part_of_cache(layer, a, 0, of_a).size;
    add(back, part_of_cache(layer, b, 0, of_a));
    if (kept_.empty()) continue;
    back.size = kept_state(layer, a).size;
    add(kept_state(layer, a), back);
    add(kept_state(layer, b), kept_state(layer, a));
    add(back, kept_state(layer, b));
  }
  mulciber::copy(device_, copies);
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
  const auto exchange_flags = [&](std::vector<bool>& flags) {
    const bool of_first = flags[a];
    flags[a] = flags[b];
    flags[b] = of_first;
  };
  exchange_flags(keeps_logits_);
  exchange_flags(masked_);
  push_sequence(a);
  push_sequence(b);
  changed_ = true;
}

void SequenceSlots::refuse(uint32_t slot) {
  const SampleStateLayout& state = layout_.state;
  const uint32_t count = words_.get(state.counts, slot);
  const auto history = words_.values(state.history_of(slot)).first(count);
  const std::vector<uint32_t> tokens(history.begin(), history.end());
  changed_ = true;  // by the look for the layer
  refuse_logits(device_, network_.weights, fmt::format("after {} tokens", count), [&] {
    return first_layer_not_finite(device_, network_, part_of(layout_, slot, 1),
                                  part_of(tensors_, slot, 1), words_, 0, tokens);
  });
}

}  // namespace mulciber
