#include "models/generation/sequence_task.h"

#include <algorithm>
#include <utility>

#include "models/generation/sequence_run.h"
#include "mulciber/error.h"

namespace mulciber {
namespace {

/// Copies rows of `from` to the ring, the first of them to the index of row `first`.
void copy_rows(Stage& stage, const BufferView& from, const RowRing& ring, uint64_t first,
               uint64_t count) {
  const uint64_t bytes = ring.first.size;
  // Where there are more rows than the ring has, the last ones stay.
  const uint64_t skipped = count - std::min<uint64_t>(count, ring.rows);
  for (uint64_t done = skipped; done < count;) {
    const uint64_t index = (first + done) % ring.rows;
    const uint64_t together = std::min(count - done, ring.rows - index);
    stage.copies.push_back({part_of(from, done * bytes, together * bytes),
                            part_of(ring.first, index * bytes, together * bytes)});
    done += together;
  }
}

}  // namespace

SequenceTask::SequenceTask(SequenceBatch& batch, SequenceRequest request,
                           const SequenceOutputs& outputs)
    : batch_(batch), request_(std::move(request)), outputs_(outputs) {
  if (batch.shape().rows != 1)
    throw SettingError("sequences", "is more than 1", "run such batches whole");
  request_.states = outputs_.states.rows > 0;
  step_shape_.states = request_.states;
  run_ = std::make_unique<SequenceBatch::Run>(request_);
  batch_.begin(*run_);
  if (run_->states[0] == SAMPLE_STOP_ID) request_.max_new_tokens = 0;  // the grammar allows nothing
  if (!request_.embeddings.empty()) batch_.state_.need_rows();
  // Programs are built now: stages of a frame must not build any.
  for (const DecoderPass& pass : batch_.passes(request_)) batch_.built(pass);
  if (request_.max_new_tokens > 1) step_ = &batch_.program(step_shape_);
  batch_.in_task_ = true;  // from here on nothing throws
}

SequenceTask::~SequenceTask() { batch_.in_task_ = false; }

std::unique_ptr<SequenceTask> SequenceBatch::start(SequenceRequest request,
                                                   const SequenceOutputs& outputs) {
  return std::make_unique<SequenceTask>(*this, std::move(request), outputs);
}

void SequenceTask::take_outputs(Stage& stage, const DecoderPass& shape, uint64_t number,
                                uint64_t position, uint64_t tokens) const {
  if (outputs_.logits.rows > 0 && shape.result == PassOutput::kChoice)
    copy_rows(stage, batch_.output_of(shape, &PassTensors::logits), outputs_.logits, number, 1);
  if (outputs_.states.rows > 0)
    copy_rows(stage, batch_.output_of(shape, &PassTensors::states), outputs_.states, position,
              tokens);
}

std::optional<Stage> SequenceTask::next() {
  if (stopped_) return std::nullopt;
  if (!prompt_given_) {
    // One pass is under way at a time: where it does not end, the row is cut to the tokens before.
    if (passes_ > ended_) return std::nullopt;
    const std::optional<SequenceBatch::Pass> pass = batch_.next_pass(*run_);
    if (pass) {
      ++passes_;
      Stage stage = {.updates = {{batch_.state_.control(), batch_.state_.words().words()}},
                     .program = &batch_.program(pass->shape)};
      held_ = batch_.length(0);
      take_outputs(stage, pass->shape, 0, held_, pass->fed[0]);
      if (pass->rows) {
        BufferView from = *pass->rows, to = batch_.state_.tensors().rows->view;
        from.size = to.size =
            pass->fed[0] * batch_.state_.network().embedding.table.shape.columns() * sizeof(float);
        stage.inputs.push_back({from, to});
      }
      // The next tokens stand behind these, whether or not these are computed yet.
      batch_.state_.set_length(0, batch_.length(0) + pass->fed[0]);
      prompt_given_ = run_->taken[0] == request_.prompts[0].size();
      return stage;
    }
    prompt_given_ = true;
  }
  const uint64_t steps_ended = ended_ > passes_ ? ended_ - passes_ : 0;
  if (steps_ + 1 >= request_.max_new_tokens || steps_ - steps_ended >= kAhead) return std::nullopt;
  Stage stage = {.program = step_};
  if (run_->grammar(0)) {
    if (ended_ < passes_ + steps_) return std::nullopt;
    const ControlArray<uint32_t> mask = batch_.state_.layout().state.mask_of(0);
    const std::span<const uint32_t> words = batch_.state_.words().values(mask);
    stage.updates = {{batch_.state_.control(mask.word, mask.end()), {words.begin(), words.end()}}};
  }
  ++steps_;
  take_outputs(stage, step_shape_, steps_, run_->first[0] + steps_ - 1, 1);
  return stage;
}

void SequenceTask::ended(uint64_t stages) {
  ended_ = stages;
  const SampleStateLayout& state = batch_.state_.layout().state;
  batch_.report_prompt(*run_);
  if (prompt_given_ && stages >= passes_ && request_.max_new_tokens > 0) {
    const auto* shown = batch_.state_.progress();
    run_->states[0] = shown[state.progress_stopped(0)];
    const auto steps = static_cast<uint32_t>(stages - passes_);
    const uint32_t told = run_->emitted[0];
    batch_.drain(*run_, steps);
    // A step that runs now may have stopped the row already: ids of the steps before it come first.
    const bool known = run_->first[0] + run_->emitted[0] == shown[state.progress_count(0)];
    stopped_ = stopped_ || (run_->states[0] != SAMPLE_RUNNING && known) || run_->is_cancelled() ||
               steps + 1 >= request_.max_new_tokens;
    if (!stopped_ && run_->grammar(0) && run_->emitted[0] > told) {
      run_->by_grammar([&] { batch_.set_masks(*run_); });
      stopped_ = run_->states[0] != SAMPLE_RUNNING || run_->cancelled;
    }
  } else if (prompt_given_ && stages >= passes_) {
    stopped_ = true;
  }
  done_ = stopped_ && ended_ == passes_ + steps_;
}

void SequenceTask::cancel() { run_->cancelled = stopped_ = true; }

SequenceResult SequenceTask::finish() {
  const SampleStateLayout& state = batch_.state_.layout().state;
  // The control words get the device's state, so that the next request goes on from here.
  const std::vector<uint32_t>& ids = run_->result.rows[0].ids;
  const uint32_t first = run_->first[0];
  if (passes_ + steps_ > ended_ && !batch_.state_.rewinds()) {
    batch_.truncate(0, 0);  // what was given and has not ended may have changed the state
  } else if (passes_ > ended_) {
    batch_.truncate(0, held_);
  } else if (run_->chooses(0)) {
    const auto chosen = static_cast<uint32_t>(ids.size());
    batch_.state_.words().set(state.history_of(0).part(first, chosen), ids);
    batch_.state_.words().set(state.positions, 0, first + std::max(chosen, 1u) - 1);
    batch_.state_.words().set(state.counts, 0, first + chosen);
  }
  run_->result.steps = static_cast<uint32_t>(steps_);
  batch_.finish(*run_);
  return std::move(run_->result);
}

}  // namespace mulciber
