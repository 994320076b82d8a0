// The continuation of one sequence, stage by stage, for hosts that run it in slices.
#pragma once

#include <memory>
#include <optional>

#include "models/generation/sequence_batch.h"
#include "runtime/slices.h"

namespace mulciber {

/// Made by SequenceBatch::start(). Passes over the prompt, then steps of decoding, a few given
/// ahead of those that have ended; with a grammar none, for it says what may come behind a token
/// once that is known. Calls the request's on_prompt and on_token from ended().
class SequenceTask : public StageSource {
 public:
  SequenceTask(SequenceBatch& batch, SequenceRequest request, const SequenceOutputs& outputs);
  ~SequenceTask() override;

  std::optional<Stage> next() override;
  void ended(uint64_t stages) override;
  bool done() const override { return done_; }
  /// What was given and has not ended counts as not begun.
  void cancel();
  /// Of a task that is done, or cancelled and with nothing on the device: as
  /// SequenceBatch::generate() gives it, and throws. The batch then holds what generate() would
  /// have left it with.
  SequenceResult finish();

 private:
  static constexpr uint32_t kAhead = 4;
  /// Adds the copies of the logits that choice `number` is made from, and of the states of the
  /// pass's tokens, the first of which stands at `position`.
  void take_outputs(Stage& stage, const DecoderPass& shape, uint64_t number, uint64_t position,
                    uint64_t tokens) const;

  SequenceBatch& batch_;
  SequenceRequest request_;
  SequenceOutputs outputs_;
  std::unique_ptr<SequenceBatch::Run> run_;
  DecoderPass step_shape_;  // of decoding one token
  Program* step_ = nullptr;
  uint64_t passes_ = 0, steps_ = 0;  // given
  uint64_t ended_ = 0;               // of both
  uint32_t held_ = 0;                // tokens before the pass given last
  bool prompt_given_ = false, stopped_ = false, done_ = false;
};

}  // namespace mulciber
