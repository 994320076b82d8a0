#include "models/translation/search_slots.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/clock.h"
#include "models/generation/decoding.h"
#include "runtime/device_copy.h"
#include "shaders/beam.h"

namespace mulciber {
namespace {

// Steps of fewer rows take as long as this many do.
constexpr uint32_t kLeastRows = 16;

/// The next smaller size of a batch, 0 below 1.
uint32_t smaller_batch(uint32_t size) {
  uint32_t items = size - 1;
  while (items > 0 && round_up_batch(items) > items) --items;
  return items;
}

/// The item of each slot after some have moved: items in the first slots stay there, the others
/// fill the rest.
std::vector<uint32_t> placed(const std::vector<uint32_t>& stay) {
  const auto count = static_cast<uint32_t>(stay.size());
  std::vector<uint32_t> slots(count), later;
  std::vector<bool> taken(count);
  for (const uint32_t item : stay) {
    if (item < count)
      taken[item] = true, slots[item] = item;
    else
      later.push_back(item);
  }
  for (uint32_t slot = 0; slot < count; ++slot) {
    if (taken[slot]) continue;
    slots[slot] = later.back();
    later.pop_back();
  }
  return slots;
}

/// Copies the control words that steps read of their sources.
void keep_source(const SourceControl& from, const ControlWords& control,
                 std::span<const uint32_t> items, const SourceControl& to, ControlWords& kept) {
  for (uint32_t slot = 0; slot < items.size(); ++slot)
    kept.set(to.lengths, slot, control.get(from.lengths, items[slot]));
  const auto copy = [&](const ControlArray<float>& source, const ControlArray<float>& target) {
    for (uint32_t i = 0; i < source.count; ++i) kept.set(target, i, control.get(source, i));
  };
  copy(from.encoder_masks, to.encoder_masks);
  copy(from.decoder_masks, to.decoder_masks);
  copy(from.cross_masks, to.cross_masks);
  if (from.encoder_bias) copy(*from.encoder_bias, *to.encoder_bias);
  if (from.decoder_bias) copy(*from.decoder_bias, *to.decoder_bias);
}

}  // namespace

SearchSlots::SearchSlots(Device& device, const EncoderDecoderNetwork& network,
                         SourceEncoder& encoder, std::shared_ptr<SearchPrograms> programs,
                         const GenerationSettings& settings, const HeadMasks& head_masks,
                         bool stays_whole)
    : device_(device),
      network_(network),
      encoder_(encoder),
      programs_(std::move(programs)),
      settings_(settings),
      head_masks_(head_masks),
      stays_whole_(stays_whole),
      step_(&programs_->all),
      control_(step_->words),
      owners_(count()) {
  write_heads(control_, step_->layout, network_, head_masks_);
  initialize_search(control_, step_->beam, settings_, 0);
  if (step_->shape.masked_output) {
    const std::vector<uint32_t> bias = programs_->output_bias_words(settings_.banned);
    upload(device_, programs_->output_bias.view(), std::as_bytes(std::span(bias)));
  }
}

uint32_t SearchSlots::free() const {
  if (!refills() && searching_ > 0) return 0;
  return count() - searching_;
}

uint32_t SearchSlots::step_slots(uint32_t items) const {
  if (!moves()) return count();
  uint32_t least = std::max(kLeastRows / settings_.beams, 1u);
  while (round_up_batch(least) > least) --least;
  return std::min(std::max(round_up_batch(items), least), count());
}

uint32_t SearchSlots::next_smaller() const {
  const uint32_t smaller = smaller_batch(step_->shape.batch);
  return smaller > 0 && step_slots(smaller) < step_->shape.batch ? smaller : 0;
}

void SearchSlots::read() {
  if (!std::exchange(stepped_, false)) return;
  BufferView from = programs_->control.view();
  from.size = uint64_t{step_->words} * sizeof(uint32_t);
  control_ = ControlWords(download_as<uint32_t>(device_, from));
  for (uint32_t slot = 0; slot < owners_.size(); ++slot) {
    const uint32_t status = control_.get(step_->beam.items, slot).status;
    if (!owners_[slot] || status == BEAM_SEARCHES) continue;
    statistics_.needed_row_steps +=
        uint64_t{control_.get(step_->beam.positions, slot * settings_.beams)} * settings_.beams;
    ended_.push_back({*std::exchange(owners_[slot], std::nullopt),
                      finished_hypotheses(step_->beam, control_, slot), status == BEAM_NOT_FINITE});
    --searching_;
  }
}

/// Moves the kept tensors of items; of caches, which grow, only the filled positions.
void SearchSlots::move_items(std::span<const uint32_t> items) {
  const SearchShape& shape = programs_->all.shape;
  const std::vector<StateTensor> tensors = network_.state_tensors(shape);
  std::vector<DeviceCopy> copies;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const BufferView kept = programs_->kept[i].view();
    const uint64_t item_bytes =
        tensors[i].shape.elements() * size_of(tensors[i].type) / shape.batch;
    const uint64_t rows = tensors[i].grows ? shape.beams : 1;
    const uint64_t row_bytes = item_bytes / rows;
    for (uint32_t slot = 0; slot < items.size(); ++slot) {
      if (items[slot] == slot) continue;
      const uint64_t filled = control_.get(step_->beam.positions, items[slot] * shape.beams);
      const uint64_t bytes = tensors[i].grows ? row_bytes / shape.context * filled : row_bytes;
      if (bytes == 0) continue;
      for (uint64_t row = 0; row < rows; ++row) {
        DeviceCopy copy = {kept, kept};
        copy.from.offset += items[slot] * item_bytes + row * row_bytes;
        copy.to.offset += slot * item_bytes + row * row_bytes;
        copy.from.size = copy.to.size = bytes;
        copies.push_back(copy);
      }
    }
  }
  copy(device_, copies);
}

void SearchSlots::arrange(uint32_t items) {
  const uint32_t wanted = step_slots(items);
  if (wanted == step_->shape.batch) return;
  std::vector<uint32_t> stay;
  for (uint32_t slot = 0; slot < owners_.size(); ++slot)
    if (owners_[slot]) stay.push_back(slot);
  stay = placed(stay);
  move_items(stay);
  const SearchStep& before = *step_;
  step_ = &programs_->step_of(device_, network_, wanted);
  ControlWords kept(step_->words);
  keep_source(before.layout, control_, stay, step_->layout, kept);
  keep_items(before.beam, control_, stay, step_->beam, kept);
  control_ = std::move(kept);
  std::vector<std::optional<uint64_t>> owners(wanted);
  for (uint32_t slot = 0; slot < stay.size(); ++slot) owners[slot] = owners_[stay[slot]];
  owners_ = std::move(owners);
  changed_ = true;
}

void SearchSlots::begin(std::span<const SlotSource> sources,
                        std::span<const std::vector<uint32_t>> next) {
  if (sources.empty()) return;
  read();
  if (searching_ > 0) ++statistics_.refills;
  arrange(searching_ + static_cast<uint32_t>(sources.size()));
  const auto start = Clock::now();
  // Sources that are as long as the search's longest are encoded in their slots at once.
  const bool alike = step_ == &programs_->all && std::ranges::all_of(sources, [&](const auto& s) {
                       return encoder_.padded_length(static_cast<uint32_t>(s.ids.size())) ==
                              step_->shape.source_length;
                     });
  if (!refills() || (searching_ == 0 && alike)) {
    encode_whole(sources);
  } else {
    std::vector<PlacedSource> entries;
    uint32_t slot = 0;
    for (const SlotSource& source : sources) {
      while (owners_[slot]) ++slot;
      owners_[slot] = source.number;
      begin_item(control_, step_->beam, slot,
                 beam_settings(source.settings ? *source.settings : settings_));
      control_.set(step_->layout.lengths, slot, static_cast<uint32_t>(source.ids.size()));
      entries.push_back({slot, source.ids});
    }
    encoder_.encode(*programs_, entries, next, head_masks_, settings_.pad);
  }
  searching_ += static_cast<uint32_t>(sources.size());
  count_unfinished(control_, step_->beam);
  changed_ = true;
  statistics_.encode_seconds += seconds_since(start);
}

void SearchSlots::encode_whole(std::span<const SlotSource> sources) {
  const SourceControl& layout = step_->layout;
  control_.fill(layout.source, settings_.pad);
  control_.fill(layout.lengths, 0);
  for (uint32_t slot = 0; slot < count(); ++slot) {
    if (slot >= sources.size()) {
      free_item(control_, step_->beam, slot);
      continue;
    }
    const SlotSource& source = sources[slot];
    owners_[slot] = source.number;
    begin_item(control_, step_->beam, slot,
               beam_settings(source.settings ? *source.settings : settings_));
    control_.set(layout.source.part(uint64_t{slot} * step_->shape.source_length, source.ids.size()),
                 source.ids);
    control_.set(layout.lengths, slot, static_cast<uint32_t>(source.ids.size()));
  }
  upload(device_, programs_->control.view(), control_.bytes());
  programs_->encode_whole(device_, network_).run();
}

bool SearchSlots::run(uint32_t left, uint32_t most, const std::atomic<bool>* cancel,
                      const std::function<void()>& on_first_step) {
  if (changed_) {
    arrange(searching_);
    BufferView to = programs_->control.view();
    to.size = control_.bytes().size();
    upload(device_, to, control_.bytes());
    changed_ = false;
  }
  const auto* unfinished =
      reinterpret_cast<const volatile uint32_t*>(programs_->progress.view().mapped);
  StepLoop loop = {.most_steps = most,
                   .finished = [&] { return *unfinished <= left; },
                   .in_flight = steps_in_flight(device_),
                   .cancel = cancel};
  loop.on_first_step = on_first_step;
  const StepLoopResult done = run_steps(device_, *step_->program, loop);
  statistics_.steps += done.steps;
  statistics_.row_steps += uint64_t{done.steps} * step_->shape.rows();
  stepped_ = stepped_ || done.steps > 0;
  if (done.steps > 0 && *unfinished < searching_) {
    read();
    if (step_slots(searching_) < step_->shape.batch) changed_ = true;
  }
  return !done.cancelled;
}

void SearchSlots::cancel(uint64_t number) {
  if (std::ranges::find(owners_, number) == owners_.end()) return;
  read();
  const auto found = std::ranges::find(owners_, number);
  if (found == owners_.end()) {  // the source has just ended
    std::erase_if(ended_, [&](const SlotResult& result) { return result.number == number; });
    return;
  }
  const auto slot = static_cast<uint32_t>(found - owners_.begin());
  statistics_.needed_row_steps +=
      uint64_t{control_.get(step_->beam.positions, slot * settings_.beams)} * settings_.beams;
  found->reset();
  free_item(control_, step_->beam, slot);
  control_.set(step_->layout.lengths, slot, 0);
  count_unfinished(control_, step_->beam);
  --searching_;
  changed_ = true;
}

uint32_t round_up_batch(uint32_t items) {
  const uint32_t power = std::bit_ceil(items);
  const uint32_t between = power / 4 * 3;
  return items <= between ? between : power;
}

}  // namespace mulciber
