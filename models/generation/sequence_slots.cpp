#include "models/generation/sequence_slots.h"

#include <algorithm>
#include <bit>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "models/core/device_weights.h"
#include "models/generation/not_finite.h"
#include "models/generation/sequence_run.h"
#include "mulciber/error.h"

namespace mulciber {
namespace {

// Recordings that are kept; all use one arena.
constexpr size_t kRecordingsKept = 96;
// Sizes of buffers are rounded up to multiples of this.
constexpr uint64_t kBufferAlignment = 256;
// A page has as many positions as kernels for software drivers take in a step: larger pages would
// need fewer words of control, and smaller ones waste less of a text's last page.
constexpr uint32_t kPagePositions = 32;

/// Prefill passes are whole pages, so that each page can be shared once it is computed.
uint32_t page_positions(const SlotShape& shape) { return std::min(kPagePositions, shape.chunk); }

/// Bytes of the largest state of a sequence in a layer; 0: no layer keeps one.
uint64_t state_bytes(const DecoderNetwork& network, const SlotShape& shape,
                     const BatchTensors& tensors) {
  uint64_t most = 0;
  for (size_t layer = 0; layer < tensors.caches.size(); ++layer)
    if (network.decoder.layers[layer].state_space)
      most = std::max(most, tensors.caches[layer].bytes() / shape.slots);
  return most;
}

/// How many positions before a token are read: those of the largest sliding window, where all
/// layers have one. Layers of both kinds share one page table.
uint32_t reach_of(const DecoderNetwork& network) {
  uint32_t reach = 0;
  for (const CausalLayer& layer : network.decoder.layers) {
    if (layer.state_space) continue;
    if (layer.attention.window == 0) return KeptPages::kAll;
    reach = std::max(reach, layer.attention.window - 1);
  }
  return reach;
}

[[noreturn]] void refuse_room() {
  throw ModelError("keys and values", "have no page left", "end a sequence before");
}

}  // namespace

BatchShape SequenceSlots::batch_of(const SlotShape& shape) {
  BatchShape batch = {shape.slots, shape.context, shape.biases, page_positions(shape)};
  const uint64_t row = batch.row_pages();
  const uint64_t wanted = (shape.tokens + batch.page - 1) / batch.page;
  // One page more takes what nobody reads.
  batch.pages =
      static_cast<uint32_t>((shape.tokens > 0 ? std::max(wanted, row) : shape.slots * row) + 1);
  return batch;
}

SlotShape SequenceSlots::bindable(const Capabilities& device, const DecoderNetwork& network,
                                  SlotShape shape) {
  uint64_t page_bytes = 1;
  for (const CausalLayer& layer : network.decoder.layers)
    if (!layer.state_space)
      page_bytes =
          std::max(page_bytes, page_positions(shape) *
                                   row_bytes(network.cache, layer.attention.cache_columns()));
  const BatchShape batch = batch_of(shape);
  const uint64_t most = device.max_storage_range / page_bytes;
  if (batch.pages <= most) return shape;
  if (batch.row_pages() + 1 > most)
    throw ModelError(
        "context",
        fmt::format("of {} tokens has {} bytes of keys and values a layer, the device binds {}",
                    shape.context, (batch.row_pages() + 1) * page_bytes, device.max_storage_range),
        "ask for a smaller context");
  shape.tokens = (most - 1) * batch.page;
  return shape;
}

BatchLayout SequenceSlots::plan(const DecoderNetwork& network, const SlotShape& shape) {
  return plan_batch(network, batch_of(shape), shape.chunk);
}

PassTensors SequenceSlots::add_nodes(ProgramBuilder& builder, const DecoderNetwork& network,
                                     const BatchLayout& layout, const BatchTensors& tensors,
                                     const SlotShape& shape, const Pass& pass) {
  // A chunk of a prompt belongs to one sequence, so that its results cannot depend on others.
  if (!pass.prompt) builder.select_as(pass.slots, shape.slots);
  return build_decoder_pass(builder, network, part_of(layout, pass.first, pass.slots),
                            part_of(tensors, network, pass.first, pass.slots), pass.pass);
}

uint64_t SequenceSlots::arena_bytes(const Capabilities& device, const DecoderNetwork& network,
                                    const SlotShape& shape, const BatchLayout& layout,
                                    const BatchTensors& tensors) {
  uint64_t most = 0;
  for (const Pass& pass :
       {Pass{0, shape.slots, false, {.length = 1, .raw_logits = true}},
        Pass{0, shape.slots, false, {.length = 1, .raw_logits = true, .shares_rows = true}},
        Pass{0, 1, true, {.length = shape.chunk, .raw_logits = true, .mixed = network.sees}}}) {
    ProgramBuilder builder(device, "plan");
    add_nodes(builder, network, layout, tensors, shape, pass);
    most = std::max(most, builder.plan().arena_bytes);
  }
  return most;
}

SequenceSlots::SequenceSlots(Device& device, const DecoderNetwork& network, const SlotShape& shape,
                             uint64_t memory_limit)
    : device_(device),
      network_(network),
      shape_(shape),
      layout_(plan(network, shape)),
      pages_(shape.slots, batch_of(shape).pages, page_positions(shape), shape.chunk,
             reach_of(network)) {
  require_memory(device, predict_bytes(device.capabilities(), network, shape), memory_limit,
                 fmt::format("{} texts in {} tokens", shape.slots,
                             uint64_t{batch_of(shape).pages} * page_positions(shape)));
  tensors_ = batch_tensor_shapes(network, batch_of(shape), layout_);
  const auto allocate = [&](Tensor& tensor, MemoryUsage use) {
    Buffer buffer = device.memory().allocate(tensor.bytes(), use);
    tensor = buffer.tensor(tensor.shape, tensor.type);
    return buffer;
  };
  control_ = allocate(tensors_.control, MemoryUsage::kActivations);
  progress_ = allocate(tensors_.progress, MemoryUsage::kReadback);
  for (Tensor& cache : tensors_.caches)
    cache_buffers_.push_back(allocate(cache, MemoryUsage::kActivations));
  if (tensors_.given) given_ = allocate(*tensors_.given, MemoryUsage::kActivations);
  if (const uint64_t bytes = state_bytes(network, shape, tensors_))
    exchanged_ = device.memory().allocate(bytes, MemoryUsage::kActivations);
  arena_ = device.memory().allocate(
      arena_bytes(device.capabilities(), network, shape, layout_, tensors_),
      MemoryUsage::kActivations);
  keeps_logits_.resize(shape.slots);
  masked_.resize(shape.slots);
  exact_.resize(shape.slots);
  mix_.resize(shape.slots);
  identity_.resize(shape.slots);
  checked_.resize(shape.slots);
  words_ = initial_words(network, layout_);
  words_.fill(layout_.state.stopped, SAMPLE_IDLE);
  upload(device, control_.view(), words_.bytes());
}

uint64_t SequenceSlots::predict_bytes(const Capabilities& device, const DecoderNetwork& network,
                                      const SlotShape& shape) {
  const BatchLayout layout = plan(network, shape);
  const BatchTensors tensors = batch_tensor_shapes(network, batch_of(shape), layout);
  uint64_t bytes = 0;
  const auto add = [&](uint64_t of_buffer) {
    bytes += (of_buffer + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
  };
  add(tensors.control.bytes());
  add(tensors.progress.bytes());
  add(arena_bytes(device, network, shape, layout, tensors));
  for (const Tensor& cache : tensors.caches) add(cache.bytes());
  if (tensors.given) add(tensors.given->bytes());
  if (const uint64_t state = state_bytes(network, shape, tensors)) add(state);
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
  // Passes that were not planned for need less, unless split-K partial sums need room of their own.
  const bool fits = builder.plan().arena_bytes <= arena_.size();
  programs_.push_front({pass, builder.build(fits ? arena_.view() : BufferView{}), kept});
  build_seconds_ += seconds_since(start);
  return programs_.front();
}

void SequenceSlots::push_changes() {
  Uploader uploader(device_);
  for (const auto& [first, end] : changes_)
    upload_words(uploader, control_.view(), words_, first, end);
  uploader.finish();
  changes_.clear();
}

void SequenceSlots::push_sequence(uint32_t slot) {
  const SampleStateLayout state = part_of(layout_, slot, 1).state;
  push(state.history.word, state.history.end());
  if (state.bias_capacity > 0) push(state.biases.word, state.biases.end());
}

void SequenceSlots::set_mask(uint32_t slot, std::span<const uint32_t> mask) {
  if (mask.empty() && !masked_[slot]) return;
  const bool changes = mulciber::set_mask(words_, layout_.state, slot, mask);
  masked_[slot] = !mask.empty();
  if (!changes) return;
  const ControlArray<uint32_t> own = layout_.state.mask_of(slot);
  push(own.word, own.word + 1 + mask.size());
}

void SequenceSlots::run(const Pass& pass) {
  Program& program = built(pass).program;
  // Words that change with each pass stand before the history, which is written when a sequence
  // begins. The ids of a chunk of a prompt stand before all of them.
  if (pass.prompt) push(layout_.prompt.word, layout_.prompt.word + pass.pass.length);
  if (pass.pass.mixed) push(layout_.given->word, layout_.given->word + pass.pass.length);
  if (std::exchange(changed_, false)) push(layout_.last.word, layout_.state.history.word);
  push_changes();
  program.run();
}

uint32_t SequenceSlots::begin(uint32_t slot, const SlotSequence& sequence) {
  const SampleStateLayout& state = layout_.state;
  // The CPU decides what ends a sequence, so that the settings have no limits.
  words_.set(state.settings, slot,
             sample_settings({.sampling = sequence.sampling, .stream = sequence.stream}));
  words_.set(state.positions, slot, 0);
  words_.set(state.counts, slot, static_cast<uint32_t>(sequence.prompt.size()));
  words_.set(state.stopped, slot, SAMPLE_IDLE);
  words_.set(state.fed, slot, 0);
  words_.set(state.history_of(slot), sequence.prompt);
  set_biases(words_, state, slot, sequence.biases);
  set_adapters(words_, network_, layout_, slot, sequence.adapters);
  push_sequence(slot);
  set_mask(slot, {});
  keeps_logits_[slot] = sequence.keeps_logits;
  exact_[slot] = sequence.exact;
  mix_[slot] = mix_of(sequence.adapters);
  identity_[slot].assign(sequence.identity.begin(), sequence.identity.end());
  changed_ = true;
  return adopt(slot);
}

uint32_t SequenceSlots::pass_tokens(uint32_t held, uint32_t tokens) const {
  const uint32_t room = batch_of(shape_).row_pages() * pages_.positions();
  return pass_length(tokens, shape_.chunk, room - held);
}

SequenceSlots::Choice SequenceSlots::feed(uint32_t slot, uint32_t count, bool chooses,
                                          std::span<const GivenRows> given) {
  const SampleStateLayout& state = layout_.state;
  const uint32_t held = length(slot);
  const uint32_t tokens = pass_tokens(held, count);
  if (!reserve(slot, count)) refuse_room();
  const GivenPart part = given_part(given, network_.width(), held, count, tokens,
                                    layout_.own_rows(), 1 / network_.stream_scale);
  const Pass pass = {slot,
                     1,
                     true,
                     {.length = tokens,
                      .result = chooses ? PassOutput::kChoice : PassOutput::kCache,
                      .raw_logits = chooses && keeps_logits_[slot],
                      .mixed = !part.values.empty()}};
  const std::span<const uint32_t> ids = words_.values(state.history_of(slot).part(held, count));
  const std::vector<uint32_t> fed(ids.begin(), ids.end());
  words_.set(part_of(layout_, slot, 1).fed_ids(0, tokens), fed);
  if (pass.pass.mixed) {
    words_.set(*layout_.given, part.numbers);
    upload(device_, part_of(given_.view(), 0, part.values.size() * sizeof(float)),
           std::as_bytes(std::span(part.values)));
  }
  words_.set(layout_.last, slot, count - 1);
  words_.set(state.fed, slot, count);
  words_.set(state.stopped, slot, chooses ? SAMPLE_RUNNING : SAMPLE_IDLE);
  changed_ = true;
  run(pass);
  Choice choice;
  if (chooses) {
    choice = take_choice(pass, slot);
    if (!choice) return choice;
  } else {
    words_.set(state.positions, slot, held + count);
    words_.set(state.fed, slot, 0);  // steps of other slots leave the position as it is
    changed_ = true;
  }
  if (pages_.computed(slot, keys(slot, held + count), held)) push_table(slot);
  return choice;
}

SequenceSlots::Choice SequenceSlots::shown_choice(const Pass& pass, uint32_t row,
                                                  uint32_t count) const {
  const SampleStateLayout seen = part_of(layout_, pass.first, pass.slots).state;
  const auto* shown = reinterpret_cast<const volatile uint32_t*>(progress_.view().mapped);
  if (shown[seen.progress_stopped(row - pass.first)] == SAMPLE_NOT_FINITE) return std::nullopt;
  return shown[seen.progress_token(row - pass.first, count)];
}

SequenceSlots::Choice SequenceSlots::take_choice(const Pass& pass, uint32_t slot) {
  checked_[slot] = {.row = slot, .left = {}};
  return take_over(slot, shown_choice(pass, slot, words_.get(layout_.state.counts, slot)));
}

SequenceSlots::Choice SequenceSlots::take_over(uint32_t slot, Choice choice) {
  const SampleStateLayout& state = layout_.state;
  // These are the steps that the kernel takes on the device.
  if (!choice) {
    words_.set(state.stopped, slot, SAMPLE_IDLE);
    changed_ = true;
    return choice;
  }
  const uint32_t count = words_.get(state.counts, slot), id = *choice;
  words_.set(state.tokens, slot, id);
  words_.set(state.positions, slot, length(slot) + words_.get(state.fed, slot));
  words_.set(state.fed, slot, 1);
  words_.set(state.history_of(slot), count % state.history_capacity, id);
  words_.set(state.counts, slot, count + 1);
  return choice;
}

uint32_t SequenceSlots::step_places(uint32_t places) const {
  // 1, 2, 4, 8, 12, 16, 24, 32, 48, ...
  constexpr uint32_t kFirstHalves = 8;
  const uint32_t power = std::bit_ceil(std::max(places, 1u));
  const uint32_t between = power / 4 * 3;
  return std::min(power > kFirstHalves && between >= places ? between : power, shape_.slots);
}

std::vector<SequenceSlots::Choice> SequenceSlots::step(std::span<const uint32_t> slots,
                                                       std::span<const Proposals> proposals) {
  uint32_t highest = *std::ranges::max_element(slots);
  const bool raw = std::ranges::any_of(slots, [&](uint32_t slot) { return keeps_logits_[slot]; });
  for (const uint32_t slot : slots)
    if (!reserve(slot, 1)) refuse_room();
  for (const Proposals& some : proposals) {
    lend_rows(some);
    highest = std::max(highest, *std::ranges::max_element(some.rows));
  }
  const Pass pass = {0,
                     step_places(highest + 1),
                     false,
                     {.length = 1, .raw_logits = raw, .shares_rows = !proposals.empty()}};
  run(pass);
  std::vector<Choice> choices;
  for (const uint32_t slot : slots) choices.push_back(take_choice(pass, slot));
  for (const Proposals& some : proposals) take_back(pass, some);
  return choices;
}

void SequenceSlots::replace_choice(uint32_t slot, uint32_t id) {
  const SampleStateLayout& state = layout_.state;
  words_.set(state.tokens, slot, id);
  words_.set(state.history_of(slot), words_.get(state.counts, slot) - 1, id);
  push_sequence(slot);
  changed_ = true;
}

std::vector<float> SequenceSlots::logits(uint32_t slot) const {
  const Built& last = programs_.front();
  const Tensor row = last.kept.raw_logits.row_slice(checked_[slot].row - last.pass.first, 1);
  return download_as<float>(device_, last.program.view(row));
}

void SequenceSlots::end(uint32_t slot, bool keep) {
  const SampleStateLayout& state = layout_.state;
  pages_.leave(slot, keys(slot, keep ? length(slot) : 0));
  // A step over neighbouring slots writes for this one as well, to page 0, which nobody reads.
  words_.set(state.stopped, slot, SAMPLE_IDLE);
  words_.set(state.fed, slot, 0);
  words_.set(state.positions, slot, 0);
  push_table(slot);
  changed_ = true;
}

void SequenceSlots::refuse(uint32_t slot) {
  const SampleStateLayout& state = layout_.state;
  const uint32_t count = words_.get(state.counts, slot);
  const auto history = words_.values(state.history_of(slot)).first(count);
  const std::vector<uint32_t> tokens(history.begin(), history.end());
  refuse_logits(device_, network_.weights, fmt::format("after {} tokens", count),
                [&] { return first_layer_not_finite(device_, network_, tokens); });
}

}  // namespace mulciber
