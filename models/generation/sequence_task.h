// The continuation of one sequence, stage by stage, for applications that run it in slices.
#pragma once

#include <memory>
#include <optional>

#include "models/generation/sequence_batch.h"
#include "runtime/slices.h"

namespace mulciber {

/// Made by SequenceBatch::start(). Its stages are prefill passes, then decode steps, of which a few
/// are given ahead of those that have ended; with a grammar none, because the mask of a step
/// depends on the token before. Calls the request's on_prompt and on_token from ended().
class SequenceTask : public StageSource {
 public:
  SequenceTask(SequenceBatch& batch, SequenceRequest request, const SequenceOutputs& outputs);
  ~SequenceTask() override;

  std::optional<Stage> next() override;
  void ended(uint64_t stages) override;
  bool done() const override { return done_; }
  /// Stages that were given and have not ended count as not begun.
  void cancel();
  /// The result of a task that is done, or cancelled and with nothing on the device. Returns and
  /// throws as SequenceBatch::generate() does, and leaves the batch as generate() would have left
  /// it.
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
  DecoderPass step_shape_;  // shape of a decode step
  Program* step_ = nullptr;
  uint64_t passes_ = 0, steps_ = 0;  // stages that were given
  uint64_t ended_ = 0;               // stages of both that have ended
  uint32_t held_ = 0;                // tokens before the prefill pass given last
  bool prompt_given_ = false, stopped_ = false, done_ = false;
};

}  // namespace mulciber
