// One search of an encoder-decoder network, stage by stage, for hosts that run it in slices.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "models/generation/decoding.h"
#include "models/translation/encoder_decoder_programs.h"
#include "runtime/slices.h"

namespace mulciber {

/// Of one source. Encodes it, then takes steps until the search has ended; after each step the
/// state is copied to where the host reads it.
class SearchTask : public StageSource {
 public:
  /// programs: of a batch of one, which nobody else uses. control: its words before the search.
  SearchTask(Device& device, std::shared_ptr<SearchPrograms> programs, ControlWords control,
             const GenerationSettings& settings);

  std::optional<Stage> next() override;
  void ended(uint64_t stages) override;
  bool done() const override { return done_; }

  uint32_t steps() const { return steps_ended_; }
  bool not_finite() const;
  /// The search has ended by itself.
  bool finished() const { return finished_ || steps_ended_ >= settings_.max_new_tokens; }
  /// What there is after the steps that have ended: hypotheses that are finished, at most as many
  /// as beams, and those that go on, both best first.
  std::vector<Hypothesis> finished_so_far() const;
  std::vector<Hypothesis> running() const;
  /// The best that goes on, and of a search that has ended the best of all; none before the first
  /// step.
  std::optional<Hypothesis> best() const;
  /// Best first, at most GenerationSettings::n_best; of a search that has ended.
  std::vector<Hypothesis> hypotheses() const;

 private:
  // Steps given beyond those that have ended. What a search has finished they leave as it is.
  static constexpr uint32_t kAhead = 2;

  std::shared_ptr<SearchPrograms> programs_;
  GenerationSettings settings_;
  ControlWords control_;  // as of the last step that has ended
  std::vector<Buffer> copies_;
  uint64_t stages_given_ = 0, stages_ended_ = 0;
  uint32_t steps_ended_ = 0;
  bool finished_ = false, done_ = false;
};

}  // namespace mulciber
