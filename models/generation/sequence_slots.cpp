#include "models/generation/sequence_slots.h"

#include <algorithm>
#include <bit>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "models/core/device_weights.h"
#include "models/generation/not_finite.h"
#include "mulciber/error.h"
#include "runtime/recorder.h"

namespace mulciber {
namespace {

// A page has as many positions as kernels for software drivers take in a step: larger pages would
// need fewer words of control, and smaller ones waste less of a sequence's last page.
constexpr uint32_t kPagePositions = 32;

/// Prefill passes are whole pages, so that each page can be shared once it is computed.
uint32_t page_positions(const SlotShape& shape) { return std::min(kPagePositions, shape.chunk); }

/// The bytes of each state of which one slot has a copy.
std::vector<uint64_t> kept_states(const DecoderNetwork& network, const SlotShape& shape) {
  std::vector<uint64_t> bytes;
  if (shape.slots != 1) return bytes;
  for (const LayerCache& cache : layer_caches(network))
    if (!cache.keeps_tokens()) bytes.push_back(cache.bytes(1));
  return bytes;
}

/// Bytes through which two slots exchange the states of a layer.
uint64_t exchanged_bytes(const DecoderNetwork& network, const SlotShape& shape) {
  return shape.slots > 1 ? largest_state(layer_caches(network)) : 0;
}

[[noreturn]] void refuse_room() {
  throw ModelError("keys and values", "have no page left", "end a sequence before");
}

}  // namespace

BatchShape SequenceSlots::batch_of(const SlotShape& shape) {
  BatchShape batch = {shape.rows(), shape.context, shape.biases, page_positions(shape)};
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
  for (const LayerCache& cache : layer_caches(network))
    if (cache.keeps_tokens()) page_bytes = std::max(page_bytes, cache.bytes(page_positions(shape)));
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

std::vector<RowsPass> SequenceSlots::planned_passes(const DecoderNetwork& network,
                                                    const SlotShape& shape) {
  const uint32_t slots = shape.slots, rows = shape.rows();
  return {{0, slots, slots, {.length = 1, .raw_logits = true}},
          {0, rows, rows, {.length = 1, .raw_logits = true, .shares_rows = true}},
          {0, 1, 1, {.length = shape.chunk, .raw_logits = true, .mixed = network.sees}}};
}

SequenceSlots::SequenceSlots(Device& device, const DecoderNetwork& network, const SlotShape& shape,
                             std::optional<uint64_t> memory_limit)
    : shape_(shape),
      state_([&] {
        if (memory_limit)
          require_memory(device, predict_bytes(device.capabilities(), network, shape),
                         *memory_limit,
                         fmt::format("{} slots and {} tokens", shape.slots,
                                     uint64_t{batch_of(shape).pages} * page_positions(shape)));
        return DecoderState(device, network, batch_of(shape), plan(network, shape), kDecodingParts);
      }()),
      pages_(shape.rows(), batch_of(shape).pages, page_positions(shape), shape.chunk,
             cache_reach(state_.caches())),
      programs_(state_, planned_passes(network, shape)) {
  for (const uint64_t bytes : kept_states(network, shape))
    kept_states_.push_back(device.memory().allocate(bytes, MemoryUsage::kActivations));
  if (const uint64_t bytes = exchanged_bytes(network, shape))
    exchanged_ = device.memory().allocate(bytes, MemoryUsage::kActivations);
  const uint32_t rows = shape.rows();
  for (std::vector<bool>* flags : {&keeps_logits_, &masked_, &exact_, &reuses_, &drafts_})
    flags->resize(rows);
  mix_.resize(rows);
  identity_.resize(rows);
  checked_.resize(rows);
  state_.words().fill(state_.layout().state.stopped, SAMPLE_IDLE);
  state_.upload();
}

SequenceSlots::~SequenceSlots() { settle(); }

uint64_t SequenceSlots::predict_bytes(const Capabilities& device, const DecoderNetwork& network,
                                      const SlotShape& shape) {
  const BatchLayout layout = plan(network, shape);
  const BatchTensors tensors = batch_tensor_shapes(network, batch_of(shape), layout);
  uint64_t bytes = DecoderState::predict_bytes(network, batch_of(shape), layout, kDecodingParts) +
                   PassPrograms::predict_bytes(device, network, layout, tensors,
                                               planned_passes(network, shape)) +
                   exchanged_bytes(network, shape);
  for (const uint64_t kept : kept_states(network, shape)) bytes += kept;
  return bytes;
}

void SequenceSlots::push_sequence(uint32_t slot) {
  const SampleStateLayout state = part_of(state_.layout(), slot, 1).state;
  push(state.history.word, state.history.end());
  if (state.bias_capacity > 0) push(state.biases.word, state.biases.end());
}

void SequenceSlots::set_mask(uint32_t slot, std::span<const uint32_t> mask) {
  if (mask.empty() && !masked_[slot]) return;
  const bool changes = mulciber::set_mask(state_.words(), state_.layout().state, slot, mask);
  masked_[slot] = !mask.empty();
  if (!changes) return;
  const ControlArray<uint32_t> own = state_.layout().state.mask_of(slot);
  push(own.word, own.word + 1 + mask.size());
}

void SequenceSlots::push_pass(const RowsPass& pass) {
  // Words that change with each pass stand before the history, which is written when a sequence
  // begins. The ids of a chunk of a prompt stand before all of them.
  if (pass.pass.length > 1)
    push(state_.layout().prompt.word, state_.layout().prompt.word + pass.pass.length);
  if (pass.pass.mixed)
    push(state_.layout().given->word, state_.layout().given->word + pass.pass.length);
  if (std::exchange(changed_, false))
    push(state_.layout().last.word, state_.layout().state.history.word);
  std::ranges::sort(changes_);
  size_t merged = 0;
  for (const auto& [first, end] : changes_) {
    if (merged > 0 && first <= changes_[merged - 1].second)
      changes_[merged - 1].second = std::max(changes_[merged - 1].second, end);
    else
      changes_[merged++] = {first, end};
  }
  changes_.resize(merged);
}

void SequenceSlots::take_updates(const RowsPass& pass, Stage& stage) {
  push_pass(pass);
  const std::span words(state_.words().words());
  for (const auto& [first, end] : changes_)
    stage.update(state_.control(first, end), words.subspan(first, end - first));
  changes_.clear();
}

Program& SequenceSlots::prepare(const RowsPass& pass) {
  Program& program = programs_.built(pass).program;
  push_pass(pass);
  settle();
  Uploader uploader(state_.device());
  for (const auto& [first, end] : changes_) state_.upload(uploader, first, end);
  uploader.finish();
  changes_.clear();
  return program;
}

void SequenceSlots::run(const RowsPass& pass) { state_.device().wait(prepare(pass).submit()); }

void SequenceSlots::settle() const { settle(ahead_.count); }

void SequenceSlots::settle(uint32_t count) const {
  for (const auto& [ticket, steps] : ahead_.submissions) {
    state_.device().wait(ticket);
    if (steps >= count) return;
  }
}

uint32_t SequenceSlots::begin(uint32_t slot, const SlotSequence& sequence) {
  const SampleStateLayout& state = state_.layout().state;
  // The CPU decides what ends a sequence, so that the settings have no limits.
  state_.words().set(state.settings, slot,
                     sample_settings({.sampling = sequence.sampling, .stream = sequence.stream}));
  state_.set_length(slot, 0);
  state_.words().set(state.counts, slot, static_cast<uint32_t>(sequence.prompt.size()));
  state_.words().set(state.stopped, slot, SAMPLE_IDLE);
  state_.words().set(state.fed, slot, 0);
  state_.words().set(state.history_of(slot), sequence.prompt);
  set_biases(state_.words(), state, slot, sequence.biases);
  set_adapters(state_.words(), state_.network(), state_.layout(), slot, sequence.adapters);
  push_sequence(slot);
  set_mask(slot, {});
  keeps_logits_[slot] = sequence.keeps_logits;
  exact_[slot] = sequence.exact;
  reuses_[slot] = sequence.reuses;
  drafts_[slot] = sequence.drafts;
  mix_[slot] = mix_of(sequence.adapters);
  identity_[slot].assign(sequence.identity.begin(), sequence.identity.end());
  changed_ = true;
  if (keeps_states()) adopt_state(slot);
  return adopt(slot);
}

uint32_t SequenceSlots::pass_tokens(uint32_t held, uint32_t tokens) const {
  const uint32_t room = batch_of(shape_).row_pages() * pages_.positions();
  return pass_length(tokens, shape_.chunk, room - held);
}

RowsPass SequenceSlots::feed_pass(uint32_t slot, uint32_t held, uint32_t count, bool chooses,
                                  const TaskPass& with) const {
  // A chunk of a prompt belongs to one sequence, so that its results cannot depend on others.
  return {slot,
          1,
          1,
          {.length = pass_tokens(held, count),
           .result = chooses ? PassOutput::kChoice : PassOutput::kCache,
           .from_rows = with.from_rows,
           .states = with.states,
           .raw_logits = chooses && keeps_logits_[slot]}};
}

RowsPass SequenceSlots::begin_feed(uint32_t slot, uint32_t count, bool chooses,
                                   std::span<const GivenRows> given, const TaskPass& with) {
  const SampleStateLayout& state = state_.layout().state;
  const uint32_t held = length(slot);
  if (!reserve(slot, count)) refuse_room();
  RowsPass pass = feed_pass(slot, held, count, chooses, with);
  const uint32_t tokens = pass.pass.length;
  GivenPart part;
  if (!given.empty())
    part = given_part(given, state_.network().width(), held, count, tokens,
                      state_.layout().own_rows(), 1 / state_.network().stream_scale);
  pass.pass.mixed = !part.values.empty();
  const ControlArray<uint32_t> fed = part_of(state_.layout(), slot, 1).fed_ids(0, tokens);
  if (with.from_rows) {
    // Padding tokens take the last embedding too: other rows may hold NaN.
    for (uint32_t i = 0; i < tokens; ++i) state_.words().set(fed, i, std::min(i, count - 1));
  } else {
    state_.words().set(fed, state_.words().values(state.history_of(slot).part(held, count)));
  }
  if (pass.pass.mixed) {
    state_.words().set(*state_.layout().given, part.numbers);
    settle();
    state_.give(part.values);
  }
  state_.words().set(state_.layout().last, slot, count - 1);
  state_.words().set(state.fed, slot, count);
  state_.words().set(state.stopped, slot, chooses ? SAMPLE_RUNNING : SAMPLE_IDLE);
  changed_ = true;
  return pass;
}

SequenceSlots::Choice SequenceSlots::feed(uint32_t slot, uint32_t count, bool chooses,
                                          std::span<const GivenRows> given) {
  const RowsPass pass = begin_feed(slot, count, chooses, given, {});
  run(pass);
  const Choice choice = end_feed(pass, slot, count);
  if (choice && keeps_states()) copy_states(true);
  return choice;
}

SequenceSlots::Choice SequenceSlots::end_feed(const RowsPass& pass, uint32_t slot, uint32_t count) {
  const SampleStateLayout& state = state_.layout().state;
  const uint32_t held = length(slot);
  Choice choice;
  if (pass.pass.result == PassOutput::kChoice) {
    choice = take_choice(pass, slot);
    if (!choice) return choice;
  } else {
    state_.set_length(slot, held + count);
    state_.words().set(state.fed, slot, 0);  // steps of other slots leave the position as it is
    changed_ = true;
  }
  if (pages_.computed(slot, keys(slot, held + count), held)) push_table(slot);
  return choice;
}

RowsPass SequenceSlots::step_pass(uint32_t slot, const TaskPass& with) const {
  return {0, step_slots(slot + 1), selected_rows({&slot, 1}), {.length = 1, .states = with.states}};
}

BufferView SequenceSlots::need_rows() {
  state_.need_rows();
  return state_.tensors().rows->view;
}

SequenceSlots::Choice SequenceSlots::shown_choice(const RowsPass& pass, uint32_t row,
                                                  uint32_t count) const {
  const SampleStateLayout seen = part_of(state_.layout(), pass.first, pass.rows).state;
  const auto* shown = state_.progress();
  // A row whose logits are not finite chooses nothing.
  if (shown[seen.progress_count(row - pass.first)] <= count) return std::nullopt;
  return shown[seen.progress_token(row - pass.first, count)];
}

SequenceSlots::Choice SequenceSlots::take_choice(const RowsPass& pass, uint32_t slot) {
  checked_[slot] = {.row = slot, .left = {}, .steps = 0};
  return take_over(
      slot, shown_choice(pass, slot, state_.words().get(state_.layout().state.counts, slot)));
}

SequenceSlots::Choice SequenceSlots::take_over(uint32_t slot, Choice choice) {
  const SampleStateLayout& state = state_.layout().state;
  // These are the steps that the kernel takes on the device.
  if (!choice) {
    state_.words().set(state.stopped, slot, SAMPLE_IDLE);
    changed_ = true;
    return choice;
  }
  const uint32_t count = state_.words().get(state.counts, slot), id = *choice;
  state_.words().set(state.tokens, slot, id);
  state_.words().set(state.positions, slot, length(slot) + state_.words().get(state.fed, slot));
  state_.words().set(state.fed, slot, 1);
  state_.words().set(state.history_of(slot), count % state.history_capacity, id);
  state_.words().set(state.counts, slot, count + 1);
  return choice;
}

uint32_t SequenceSlots::selected_rows(std::span<const uint32_t> slots) const {
  const bool drafts = std::ranges::any_of(slots, [&](uint32_t slot) { return drafts_[slot]; });
  return drafts ? shape_.rows() : shape_.slots;
}

uint32_t SequenceSlots::step_slots(uint32_t count) const {
  // 1, 2, 4, 8, 12, 16, 24, 32, 48, ...
  constexpr uint32_t kFirstHalves = 8;
  const uint32_t power = std::bit_ceil(std::max(count, 1u));
  const uint32_t between = power / 4 * 3;
  return std::min(power > kFirstHalves && between >= count ? between : power, shape_.rows());
}

std::vector<SequenceSlots::Choice> SequenceSlots::step(std::span<const uint32_t> slots,
                                                       std::span<const Draft> drafts) {
  run_only(slots);
  uint32_t highest = *std::ranges::max_element(slots);
  const bool raw = std::ranges::any_of(slots, [&](uint32_t slot) { return keeps_logits_[slot]; });
  for (const uint32_t slot : slots)
    if (!reserve(slot, 1)) refuse_room();
  for (const Draft& some : drafts) {
    lend_rows(some);
    highest = std::max(highest, *std::ranges::max_element(some.rows));
  }
  const RowsPass pass = {0,
                         step_slots(highest + 1),
                         selected_rows(slots),
                         {.length = 1, .raw_logits = raw, .shares_rows = !drafts.empty()}};
  run(pass);
  std::vector<Choice> choices;
  for (const uint32_t slot : slots) choices.push_back(take_choice(pass, slot));
  for (const Draft& some : drafts) take_back(pass, some);
  return choices;
}

std::vector<SequenceSlots::Choice> SequenceSlots::steps(std::span<const uint32_t> slots,
                                                        uint32_t count, uint32_t together) {
  run_only(slots);
  for (const uint32_t slot : slots)
    if (!reserve(slot, count)) refuse_room();
  const RowsPass pass = {
      0, step_slots(*std::ranges::max_element(slots) + 1), selected_rows(slots), {.length = 1}};
  Program& program = prepare(pass);
  ahead_ = {.pass = pass, .count = count, .submissions = {}};
  for (uint32_t done = 0; done < count;) {
    const uint32_t more = std::min(together, count - done);
    done += more;
    ahead_.submissions.emplace_back(program.submit(more), done);
  }
  settle(1);
  std::vector<Choice> choices;
  for (const uint32_t slot : slots) {
    choices.push_back(take_choice(pass, slot));
    checked_[slot].steps = choices.back() ? count - 1 : 0;
  }
  return choices;
}

void SequenceSlots::replace_choice(uint32_t slot, uint32_t id) {
  const SampleStateLayout& state = state_.layout().state;
  state_.words().set(state.tokens, slot, id);
  state_.words().set(state.history_of(slot), state_.words().get(state.counts, slot) - 1, id);
  push_sequence(slot);
  changed_ = true;
}

std::vector<float> SequenceSlots::logits(uint32_t slot) const {
  const PassPrograms::Built& last = programs_.latest();
  const Tensor row = last.kept.raw_logits.row_slice(checked_[slot].row - last.pass.first, 1);
  return download_as<float>(state_.device(), last.program.view(row));
}

void SequenceSlots::end(uint32_t slot, bool keep) {
  if (!keeps_states()) {
    pages_.leave(slot, keys(slot, keep ? length(slot) : 0));
  } else {
    // The state stays where it is, unless steps have taken it past the sequence's end.
    left_.reset();
    std::vector<uint32_t> tokens = told(slot, length(slot));
    const bool has_numbers =
        std::ranges::all_of(tokens, [](uint32_t token) { return token < kIdentities; });
    if (keep && checked_[slot].steps == 0 && has_numbers)
      left_ = KeptState{std::move(tokens), mix_[slot]};
    if (!keep) kept_.reset();
  }
  checked_[slot] = {};
  // A step over neighbouring slots writes for this one as well, to page 0, which nobody reads.
  rest(slot);
  state_.set_length(slot, 0);
  push_table(slot);
}

void SequenceSlots::run_only(std::span<const uint32_t> slots) {
  const SampleStateLayout& state = state_.layout().state;
  for (uint32_t slot = 0; slot < shape_.slots; ++slot) {
    const bool runs = state_.words().get(state.stopped, slot) == SAMPLE_RUNNING;
    const bool wanted = std::ranges::find(slots, slot) != slots.end();
    if (runs && !wanted) rest(slot);
    if (runs || !wanted) continue;
    state_.words().set(state.stopped, slot, SAMPLE_RUNNING);
    state_.words().set(state.fed, slot, 1);
    changed_ = true;
  }
}

void SequenceSlots::rest(uint32_t slot) {
  state_.words().set(state_.layout().state.stopped, slot, SAMPLE_IDLE);
  state_.words().set(state_.layout().state.fed, slot, 0);
  changed_ = true;
}

const Program& SequenceSlots::step_program() {
  return programs_.built({0, shape_.slots, shape_.slots, {.length = 1}}).program;
}

void SequenceSlots::trim() {
  if (lent_) return;
  settle();
  programs_.clear();
}

void SequenceSlots::require_free() const {
  if (lent_)
    throw SettingError("TextGenerator", "has a GenerationTask under way",
                       "destroy the task once its slices have ended, or take "
                       "TextGenerator::conversation()");
}

void SequenceSlots::refuse(uint32_t slot) {
  const uint32_t count = state_.words().get(state_.layout().state.counts, slot);
  const std::vector<uint32_t> tokens = state_.history(slot);
  refuse_logits(state_.device(), state_.network().weights, fmt::format("after {} tokens", count),
                [&] { return first_layer_not_finite(state_.device(), state_.network(), tokens); });
}

std::vector<PipelineKey> SequenceSlots::pipelines() const {
  const Capabilities& device = state_.device().capabilities();
  std::vector<PipelineKey> keys;
  BatchTensors tensors = state_.tensors();
  if (!tensors.rows)
    tensors.rows = planned_tensor({state_.layout().longest, state_.network().width()});
  const auto add = [&](const RowsPass& pass) {
    ProgramBuilder builder(device, "plan");
    add_rows_pass(builder, state_.network(), state_.layout(), tensors, pass);
    for (const Node& node : builder.nodes()) keys.push_back(pipeline_key(node, device));
  };
  std::set<uint32_t> selected = {shape_.slots};
  if (can_draft()) selected.insert(shape_.rows());
  for (const bool raw : {false, true}) {
    for (const uint32_t rows : selected) {
      for (uint32_t count = 1; count <= rows; count = step_slots(count) + 1) {
        const RowsPass step = {0, step_slots(count), rows, {.length = 1, .raw_logits = raw}};
        add(step);
        if (!can_draft()) continue;
        RowsPass verifying = step;
        verifying.pass.shares_rows = true;
        add(verifying);
      }
    }
    for (const uint32_t length : kPassLengths) {
      if (length > shape_.chunk) break;
      for (const PassOutput output : {PassOutput::kCache, PassOutput::kChoice})
        for (const bool mixed : {false, true})
          if (!mixed || state_.network().sees)
            add({0, 1, 1, {.length = length, .result = output, .raw_logits = raw, .mixed = mixed}});
      // Tasks have a single slot.
      if (shape_.slots == 1 && !raw)
        add({0, 1, 1, {.length = length, .from_rows = true, .states = true}});
    }
  }
  return keys;
}

}  // namespace mulciber
