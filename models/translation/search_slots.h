// Slots of one running search over an encoder-decoder network, each taken by a source and left
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

/// A source that asks for a slot.
struct SlotSource {
  uint64_t number = 0;  // the caller's number of the source
  std::span<const uint32_t> ids;
  /// Only settings that may differ between sources are read: max_new_tokens, min_length,
  /// forced_bos, forced_eos.
  const GenerationSettings* settings = nullptr;  // null: those of the search
};

/// A source that has left its slot.
struct SlotResult {
  uint64_t number = 0;
  std::vector<Hypothesis> found;  // best first
  bool not_finite = false;        // its logits were not: nothing of the result is to be used
};

struct SlotStatistics {
  uint64_t steps = 0;
  uint64_t row_steps = 0;         // rows of all steps together
  uint64_t needed_row_steps = 0;  // rows of sources that still searched
  uint64_t refills = 0;           // how often sources joined others under way
  double encode_seconds = 0;
};

/// The result of a source depends neither on its slot nor on the batch composition, nor on when it
/// came: it is encoded as SourceEncoder does it, counts its own positions, and steps over fewer
/// slots choose their kernels as for all of them. The result depends on the shape of the search:
/// its slots, beams, longest source and longest translation.
///
/// A recurrent decoder's state stays in one batch: such a network takes sources only while nothing
/// is under way, and its steps cover all slots. Not thread-safe. Must not outlive the device, the
/// network's weights or the encoder.
class SearchSlots {
 public:
  /// programs: used by nobody else. settings: those of all sources, except what SlotSource gives.
  /// stays_whole: steps cover all slots, for comparison.
  SearchSlots(Device& device, const EncoderDecoderNetwork& network, SourceEncoder& encoder,
              std::shared_ptr<SearchPrograms> programs, const GenerationSettings& settings,
              const HeadMasks& head_masks, bool stays_whole = false);

  uint32_t count() const { return programs_->all.shape.batch; }
  uint32_t searching() const { return searching_; }
  /// Whether sources may join others that are under way.
  bool refills() const { return network_.keeps_items_apart(); }
  /// How many sources begin() takes now.
  uint32_t free() const;
  /// Steps cover fewer slots once no more than so many sources search; 0: they do not.
  uint32_t next_smaller() const;

  /// Gives slots to sources, at most as many as are free, each at position 0. next: the ids of
  /// sources that will come after them, where these are known.
  void begin(std::span<const SlotSource> sources, std::span<const std::vector<uint32_t>> next = {});
  /// Runs steps until no more than `left` sources search, at most `most`. Returns false where it
  /// was cancelled.
  bool run(uint32_t left, uint32_t most, const std::atomic<bool>* cancel = nullptr,
           const std::function<void()>& on_first_step = {});
  /// The sources that have ended since the last call.
  std::vector<SlotResult> take() { return std::exchange(ended_, {}); }
  /// Frees the slot of a source before the next step. The source has no result.
  void cancel(uint64_t number);

  const SlotStatistics& statistics() const { return statistics_; }
  const SearchPrograms& programs() const { return *programs_; }

 private:
  /// Reads the state back where steps have changed it, and frees the slots of sources that have
  /// ended.
  void read();
  /// Switches to the step for so many searching sources.
  void arrange(uint32_t items);
  /// Slots of a step over so many items.
  uint32_t step_slots(uint32_t items) const;
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
  ControlWords control_;  // contents of step_: the device's, unless changed_ or stepped_ is set
  bool changed_ = true;   // by the CPU, since it was written
  bool stepped_ = false;  // by the device, since it was read
  std::vector<std::optional<uint64_t>> owners_;  // numbers of searching sources, by slot
  uint32_t searching_ = 0;
  std::vector<SlotResult> ended_;
  SlotStatistics statistics_;
};

/// Rounds up to a batch size for which a program is built: 1, 2, 3, 4, 6, 8, 12, 16, 24, ... Less
/// than a third of its items are padding.
uint32_t round_up_batch(uint32_t items);

}  // namespace mulciber
