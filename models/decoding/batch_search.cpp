#include "models/decoding/batch_search.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "base/clock.h"
#include "models/decoding/decoding.h"
#include "runtime/device_copy.h"
#include "shaders/beam.h"

namespace mulciber {
namespace {

// Fewer rows than these take as long as they do.
constexpr uint32_t kLeastRows = 16;

/// The next smaller size of a batch, at most three quarters of it; 0 where it stays.
uint32_t smaller_batch(const EncoderDecoderNetwork& network, const SearchShape& shape) {
  if (!network.keeps_items_apart() || shape.batch < 2 || shape.rows() <= kLeastRows) return 0;
  uint32_t items = shape.batch - 1;
  while (round_up_batch(items) > items) --items;
  return items;
}

/// Where the items that stay go: those among the first places stay there, the others fill the rest.
std::vector<uint32_t> placed(const std::vector<uint32_t>& stay) {
  const auto count = static_cast<uint32_t>(stay.size());
  std::vector<uint32_t> places(count), later;
  std::vector<bool> taken(count);
  for (const uint32_t item : stay) {
    if (item < count)
      taken[item] = true, places[item] = item;
    else
      later.push_back(item);
  }
  for (uint32_t place = 0; place < count; ++place) {
    if (taken[place]) continue;
    places[place] = later.back();
    later.pop_back();
  }
  return places;
}

/// Moves what is kept of items to their places: of what grows, the positions that were filled.
void move_items(Device& device, const EncoderDecoderNetwork& network,
                const SearchPrograms& programs, uint32_t filled, std::span<const uint32_t> items) {
  const SearchShape& shape = programs.all.shape;
  const std::vector<StateTensor> tensors = network.state_tensors(shape);
  std::vector<DeviceCopy> copies;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const BufferView kept = programs.kept[i].view();
    const uint64_t item_bytes =
        tensors[i].shape.elements() * size_of(tensors[i].type) / shape.batch;
    const uint64_t rows = tensors[i].grows ? shape.beams : 1;
    const uint64_t row_bytes = item_bytes / rows;
    const uint64_t bytes = tensors[i].grows ? row_bytes / shape.context * filled : row_bytes;
    for (uint32_t place = 0; place < items.size(); ++place) {
      if (items[place] == place) continue;
      for (uint64_t row = 0; row < rows; ++row) {
        DeviceCopy copy = {kept, kept};
        copy.from.offset += items[place] * item_bytes + row * row_bytes;
        copy.to.offset += place * item_bytes + row * row_bytes;
        copy.from.size = copy.to.size = bytes;
        copies.push_back(copy);
      }
    }
  }
  copy(device, copies);
}

/// Which items of a step still search.
std::vector<uint32_t> searching(const SearchStep& step, const ControlWords& control) {
  std::vector<uint32_t> found;
  for (uint32_t item = 0; item < step.shape.batch; ++item) {
    if (control.get(step.beam.items, item).status == BEAM_SEARCHES) found.push_back(item);
  }
  return found;
}

/// What steps read of their sources beside what is kept.
void keep_source(const SourceControl& from, const ControlWords& control,
                 std::span<const uint32_t> items, const SourceControl& to, ControlWords& kept) {
  for (uint32_t place = 0; place < items.size(); ++place)
    kept.set(to.lengths, place, control.get(from.lengths, items[place]));
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

BatchSearchResult search_batch(Device& device, const EncoderDecoderNetwork& network,
                               SearchPrograms& programs, ControlWords control,
                               const GenerationRequest& request) {
  const auto items = static_cast<uint32_t>(request.sources.size());
  BatchSearchResult result;
  result.items.resize(items);
  upload(device, programs.control.view(), control.bytes());
  const auto start = Clock::now();
  Ticket encoded = 0;
  if (device.profiler()) {
    programs.encode->run();  // its times are read when it is waited for
  } else {
    encoded = programs.encode->submit();
  }
  const auto* progress =
      reinterpret_cast<const volatile uint32_t*>(programs.progress.view().mapped);
  SearchStep* step = &programs.all;
  std::vector<uint32_t> places(items);  // which of the sources each place of the step has
  std::iota(places.begin(), places.end(), 0);
  for (;;) {
    const uint32_t smaller = request.stays_whole ? 0 : smaller_batch(network, step->shape);
    const bool first = result.steps == 0;
    StepLoop loop = {.most_steps = request.settings.max_new_tokens - result.steps,
                     .finished = [&] { return progress[0] <= smaller; },
                     .in_flight = steps_in_flight(device),
                     .cancel = request.cancel};
    if (first) {
      loop.on_first_submitted = [&] {
        device.wait(encoded);
        result.encode_seconds = seconds_since(start);
      };
      loop.on_first_step = request.on_first_token;
    }
    const StepLoopResult done = run_steps(device, *step->program, loop);
    result.steps += done.steps;
    result.row_steps += uint64_t{done.steps} * step->shape.rows();
    result.cancelled = done.cancelled;
    if (done.cancelled) break;

    control = ControlWords(download_as<uint32_t>(device, programs.control.view()));
    const std::vector<uint32_t> left = searching(*step, control);
    const bool ended = left.empty() || result.steps >= request.settings.max_new_tokens;
    for (uint32_t place = 0; place < places.size(); ++place) {
      const shader::BeamItem item = control.get(step->beam.items, place);
      if (item.status == BEAM_SEARCHES && !ended) continue;
      if (item.status == BEAM_NOT_FINITE && !result.not_finite) result.not_finite = places[place];
      result.items[places[place]] = finished_hypotheses(step->beam, control, place);
    }
    if (ended) break;

    const std::vector<uint32_t> stay = placed(left);
    // All began at once.
    const uint32_t filled = control.get(step->beam.positions, left.front() * step->shape.beams);
    move_items(device, network, programs, filled, stay);
    const SearchStep& before = *step;
    step = &programs.step_of(device, network, round_up_batch(static_cast<uint32_t>(stay.size())));
    ControlWords kept(step->words);
    keep_source(before.layout, control, stay, step->layout, kept);
    keep_items(before.beam, control, stay, step->beam, kept);
    BufferView to = programs.control.view();
    to.size = kept.bytes().size();
    upload(device, to, kept.bytes());
    std::vector<uint32_t> sources;
    for (const uint32_t place : stay) sources.push_back(places[place]);
    places = std::move(sources);
  }
  result.decode_seconds = seconds_since(start) - result.encode_seconds;
  return result;
}

uint32_t round_up_batch(uint32_t items) {
  const uint32_t power = std::bit_ceil(items);
  const uint32_t between = power / 4 * 3;
  return items <= between ? between : power;
}

}  // namespace mulciber
