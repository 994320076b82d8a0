#include "models/decoding/sequence_task.h"

#include <algorithm>
#include <utility>

#include "models/decoding/sequence_run.h"
#include "mulciber/error.h"

namespace mulciber {

SequenceTask::SequenceTask(SequenceBatch& batch, SequenceRequest request)
    : batch_(batch), request_(std::move(request)) {
  if (batch.shape().rows != 1)
    throw SettingError("sequences", "is more than 1", "run such batches whole");
  run_ = std::make_unique<SequenceBatch::Run>(request_);
  batch_.begin(*run_);
  // Programs are made now: stages of a frame make nothing.
  for (const DecoderPass& pass : batch_.passes(request_)) batch_.program(pass);
  if (request_.max_new_tokens > 1) step_ = &batch_.program({1, PassOutput::kChoice});
}

SequenceTask::~SequenceTask() = default;

std::unique_ptr<SequenceTask> SequenceBatch::start(SequenceRequest request) {
  return std::make_unique<SequenceTask>(*this, std::move(request));
}

std::optional<Stage> SequenceTask::next() {
  if (stopped_) return std::nullopt;
  if (!prompt_given_) {
    // A program that a pass needs may take the place of one that is not yet recorded to its end.
    if (passes_ > ended_) return std::nullopt;
    const std::optional<SequenceBatch::Pass> pass = batch_.next_pass(*run_);
    if (pass) {
      ++passes_;
      Stage stage = {.updates = {{batch_.control_.view(), batch_.words_.words()}},
                     .program = &batch_.program(pass->shape)};
      held_ = batch_.length(0);
      // What comes next stands behind these tokens, whether or not they are computed yet.
      batch_.words_.set(batch_.layout_.state.positions, 0, batch_.length(0) + pass->fed[0]);
      prompt_given_ = run_->taken[0] == request_.prompts[0].size();
      return stage;
    }
    prompt_given_ = true;
  }
  const uint64_t steps_ended = ended_ > passes_ ? ended_ - passes_ : 0;
  if (steps_ + 1 >= request_.max_new_tokens || steps_ - steps_ended >= kAhead) return std::nullopt;
  ++steps_;
  return Stage{.program = step_};
}

void SequenceTask::ended(uint64_t stages) {
  ended_ = stages;
  const SampleStateLayout& state = batch_.layout_.state;
  batch_.report_prompt(*run_);
  if (prompt_given_ && stages >= passes_ && request_.max_new_tokens > 0) {
    const auto* shown = reinterpret_cast<const volatile uint32_t*>(batch_.progress_.view().mapped);
    run_->states[0] = shown[state.progress_stopped(0)];
    const auto steps = static_cast<uint32_t>(stages - passes_);
    batch_.drain(*run_, steps);
    // A step that runs now may have stopped it already: what the last ones chose comes first.
    const bool known = run_->first[0] + run_->emitted[0] == shown[state.progress_count(0)];
    stopped_ = (run_->states[0] != SAMPLE_RUNNING && known) || run_->is_cancelled() ||
               steps + 1 >= request_.max_new_tokens;
  } else if (prompt_given_ && stages >= passes_) {
    stopped_ = true;
  }
  done_ = stopped_ && ended_ == passes_ + steps_;
}

void SequenceTask::cancel() { run_->cancelled = stopped_ = true; }

SequenceResult SequenceTask::finish() {
  const SampleStateLayout& state = batch_.layout_.state;
  // What the device has in its copy of the state, so that the next request goes on from here.
  const std::vector<uint32_t>& ids = run_->result.rows[0].ids;
  const uint32_t first = run_->first[0];
  if (passes_ > ended_) {
    batch_.truncate(0, held_);
  } else if (run_->chooses(0)) {
    const auto chosen = static_cast<uint32_t>(ids.size());
    batch_.words_.set(state.history_of(0).part(first, chosen), ids);
    batch_.words_.set(state.positions, 0, first + std::max(chosen, 1u) - 1);
    batch_.words_.set(state.counts, 0, first + chosen);
  }
  run_->result.steps = static_cast<uint32_t>(steps_);
  batch_.finish(*run_);
  return std::move(run_->result);
}

}  // namespace mulciber
