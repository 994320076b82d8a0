// Places of one running search over an encoder-decoder network, each taken by a source and left
// apart from the others, between steps: continuous batching of translations.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "models/generation/decoding.h"
#include "models/translation/source_encoder.h"

namespace mulciber {

/// A source that asks for a place.
struct SlotSource {
  uint64_t number = 0;  // who asks
  std::span<const uint32_t> ids;
  /// Of what differs from source to source: max_new_tokens, min_length, forced_bos, forced_eos.
  const GenerationSettings* settings = nullptr;  // null: those of the search
};

/// A source that has left its place.
struct SlotResult {
  uint64_t number = 0;
  std::vector<Hypothesis> found;  // best first
  bool not_finite = false;        // its logits were not: nothing of it is to be used
};

struct SlotStatistics {
  uint64_t steps = 0;
  uint64_t row_steps = 0;         // rows of the steps, together
  uint64_t needed_row_steps = 0;  // of sources that searched still
  uint64_t refills = 0;           // times that sources joined others under way
  double encode_seconds = 0;
};

/// What is found of a source depends neither on its place nor on the others, nor on when it came:
/// it is encoded as SourceEncoder says, stands at a position of its own, and steps over fewer
/// places choose their kernels as for all of them. It depends on the shape of the search: its
/// places, beams, longest source and longest translation.
///
/// The state of a recurrent decoder stays in one batch: such a network takes sources while nothing
/// is under way, and its steps cover all places. Not thread-safe. Must not outlive the device, the
/// network's weights or the encoder.
class SearchSlots {
 public:
  /// programs: which nobody else uses. settings: of all sources, but for what SlotSource says.
  /// stays_whole: steps cover all places, for comparison.
  SearchSlots(Device& device, const EncoderDecoderNetwork& network, SourceEncoder& encoder,
              std::shared_ptr<SearchPrograms> programs, const GenerationSettings& settings,
              const HeadMasks& head_masks, bool stays_whole = false);

  uint32_t places() const { return programs_->all.shape.batch; }
  uint32_t searching() const { return searching_; }
  /// Whether sources may join others that are under way.
  bool refills() const { return network_.keeps_items_apart(); }
  /// Sources that begin() takes now.
  uint32_t free() const;
  /// Once no more than so many search, steps cover fewer places; 0: they do not.
  uint32_t next_smaller() const;

  /// Sources take places, as many as are free at most, each at position 0. next: the ids of those
  /// that will come after them, where that is known.
  void begin(std::span<const SlotSource> sources, std::span<const std::vector<uint32_t>> next = {});
  /// Steps until no more than `left` search, at most `most`. False where it was cancelled.
  bool run(uint32_t left, uint32_t most, const std::atomic<bool>* cancel = nullptr,
           const std::function<void()>& on_first_step = {});
  /// What has ended since.
  std::vector<SlotResult> take() { return std::exchange(ended_, {}); }
  /// Frees the place of a source before the next step. Nothing is told of it.
  void cancel(uint64_t number);

  const SlotStatistics& statistics() const { return statistics_; }
  const SearchPrograms& programs() const { return *programs_; }

 private:
  /// Reads the state back where steps have changed it, and frees the places of those that ended.
  void read();
  /// Makes room for so many that search: the step that covers them.
  void arrange(uint32_t items);
  /// Places of a step over so many items.
  uint32_t step_places(uint32_t items) const;
  void move_items(std::span<const uint32_t> items);
  void encode_whole(std::span<const SlotSource> sources);
  bool moves() const { return refills() && !stays_whole_; }

  Device& device_;
  const EncoderDecoderNetwork& network_;
  SourceEncoder& encoder_;
  std::shared_ptr<SearchPrograms> programs_;
  GenerationSettings settings_;
  HeadMasks head_masks_;
  bool stays_whole_;

  SearchStep* step_;
  ControlWords control_;  // of step_: the device's but for what changed_ and stepped_ say
  bool changed_ = true;   // by the host since it was written
  bool stepped_ = false;  // by the device since it was read
  std::vector<std::optional<uint64_t>> owners_;  // of the step's places, that search
  uint32_t searching_ = 0;
  std::vector<SlotResult> ended_;
  SlotStatistics statistics_;
};

/// 1, 2, 3, 4, 6, 8, 12, 16, 24, ...: so many items a program is built for, of which at most a
/// third are padding.
uint32_t round_up_batch(uint32_t items);

}  // namespace mulciber
