// One search of an encoder-decoder network, stage by stage, for applications that run it in slices.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "models/generation/decoding.h"
#include "models/translation/encoder_decoder_programs.h"
#include "runtime/slices.h"

namespace mulciber {

/// Searches for one source: encodes it, then takes steps until the search has ended. After each
/// step the state is copied to where the CPU reads it.
class SearchTask : public StageSource {
 public:
  /// programs: for a batch of one, used by nobody else. control: its words before the search.
  SearchTask(Device& device, std::shared_ptr<SearchPrograms> programs, ControlWords control,
             const GenerationSettings& settings);

  bool next(Stage& stage) override;
  void ended(uint64_t stages) override;
  bool done() const override { return done_; }

  uint32_t steps() const { return steps_ended_; }
  bool not_finite() const;
  /// Whether the search has ended by itself.
  bool finished() const { return finished_ || steps_ended_ >= settings_.max_new_tokens; }
  /// The hypotheses after the steps that have ended: finished ones, at most as many as beams, and
  /// running ones, both best first.
  std::vector<Hypothesis> finished_so_far() const;
  std::vector<Hypothesis> running() const;
  /// The best running hypothesis, or the best of all once the search has ended; none before the
  /// first step.
  std::optional<Hypothesis> best() const;
  /// The hypotheses of a search that has ended, best first, at most GenerationSettings::n_best.
  std::vector<Hypothesis> hypotheses() const;

 private:
  // Steps given beyond those that have ended. They do not change what a search has finished.
  static constexpr uint32_t kAhead = 2;

  std::shared_ptr<SearchPrograms> programs_;
  GenerationSettings settings_;
  ControlWords control_;  // after the last step that has ended
  std::vector<Buffer> copies_;
  uint64_t stages_given_ = 0, stages_ended_ = 0;
  uint32_t steps_ended_ = 0;
  bool finished_ = false, done_ = false;
};

}  // namespace mulciber
