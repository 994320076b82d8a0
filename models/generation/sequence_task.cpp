#include "models/generation/sequence_task.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "models/generation/completion_grammar.h"
#include "mulciber/error.h"
#include "mulciber/text_generator.h"
#include "runtime/buffer_part.h"

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

SequenceTask::SequenceTask(std::shared_ptr<SequenceSlots> slots, SequenceTaskRequest request,
                           const SequenceOutputs& outputs)
    : slots_(std::move(slots)), request_(std::move(request)), outputs_(outputs) {
  slots_->require_free();
  const DecoderNetwork& network = slots_->state().network();
  const uint32_t context = slots_->shape().context;
  const auto size = static_cast<uint32_t>(request_.prompt.size());
  if (size > context)
    throw ModelError(
        "prompt",
        fmt::format("takes the context to {} tokens, there is room for {}", size, context),
        "ask for a larger context, or give a shorter text");
  for (const uint32_t id : request_.prompt) {
    if (id < network.vocabulary || (id == kNoTokenId && !request_.embeddings.empty())) continue;
    throw ModelError(
        "prompt",
        fmt::format("holds token id {}, the model's are below {}", id, network.vocabulary),
        "tokenizer and model do not belong together");
  }
  // One token more than the context is known, and needs no room.
  request_.max_new_tokens = std::min(request_.max_new_tokens, context - size + 1);
  if (!request_.embeddings.empty()) rows_ = slots_->need_rows();
  taken_ = slots_->begin(0, {.prompt = request_.prompt,
                             .exact = false,
                             .reuses = outputs_.states.rows == 0,
                             .sampling = request_.sampling,
                             .stream = request_.stream,
                             .biases = request_.biases,
                             .adapters = request_.adapters});
  slots_->lend(true);
  try {
    set_mask();
    if (!refused_ && stopped_) done_ = true;  // the grammar allows nothing
    if (refused_) std::rethrow_exception(refused_);
    slots_->reserve(0, size - taken_ + request_.max_new_tokens - 1);
    build();
  } catch (...) {
    slots_->lend(false);
    slots_->end(0, false);
    throw;
  }
}

SequenceTask::~SequenceTask() {
  slots_->lend(false);
  if (!finished_) slots_->end(0, false);
}

SequenceTask::Feed SequenceTask::next_feed(uint32_t taken) const {
  Feed feed = {.tokens = static_cast<uint32_t>(request_.prompt.size()) - taken};
  for (const PromptRows& rows : request_.embeddings) {
    if (rows.first > taken) {
      feed.tokens = std::min(feed.tokens, rows.first - taken);
      break;
    }
    if (taken >= rows.first + rows.count) continue;
    const uint64_t row_bytes = slots_->state().network().width() * sizeof(float);
    feed.tokens = rows.first + rows.count - taken;
    feed.rows = part_of(rows.from, (taken - rows.first) * row_bytes, feed.tokens * row_bytes);
    break;
  }
  feed.tokens = std::min(feed.tokens, slots_->pass_tokens(taken, feed.tokens));
  feed.chooses = taken + feed.tokens == request_.prompt.size();
  return feed;
}

SequenceSlots::TaskPass SequenceTask::kind(const Feed& feed) const {
  return {.from_rows = feed.rows.has_value(), .states = outputs_.states.rows > 0};
}

void SequenceTask::build() {
  for (uint32_t taken = taken_; taken < request_.prompt.size();) {
    const Feed feed = next_feed(taken);
    slots_->built(slots_->feed_pass(0, taken, feed.tokens, feed.chooses, kind(feed)));
    taken += feed.tokens;
  }
  step_ = slots_->step_pass(0, {.states = outputs_.states.rows > 0});
  if (request_.max_new_tokens > 1) slots_->built(step_);
}

void SequenceTask::take_outputs(Stage& stage, const RowsPass& pass, uint64_t number,
                                uint64_t position, uint64_t tokens) const {
  const auto view = [&](Tensor PassTensors::*kept) {
    const PassPrograms::Built& built = slots_->built(pass);
    return built.program.view(built.kept.*kept);
  };
  if (outputs_.logits.rows > 0 && pass.pass.result == PassOutput::kChoice)
    copy_rows(stage, view(&PassTensors::logits), outputs_.logits, number, 1);
  if (outputs_.states.rows > 0)
    copy_rows(stage, view(&PassTensors::states), outputs_.states, position, tokens);
}

void SequenceTask::feed_stage(Stage& stage) {
  const Feed feed = next_feed(taken_);
  fed_ = feed.tokens;
  feed_ = slots_->begin_feed(0, fed_, feed.chooses, {}, kind(feed));
  slots_->take_updates(feed_, stage);
  stage.program = &slots_->built(feed_).program;
  take_outputs(stage, feed_, 0, taken_, fed_);
  if (feed.rows) {
    const uint64_t bytes = fed_ * slots_->state().network().width() * sizeof(float);
    stage.inputs.push_back({part_of(*feed.rows, 0, bytes), part_of(*rows_, 0, bytes)});
  }
  taken_ += fed_;
  ++passes_;
}

void SequenceTask::step_stage(Stage& stage) {
  stage.program = &slots_->built(step_).program;
  // Nothing but a mask changes between steps: pages were reserved before the first of them.
  if (request_.grammar) slots_->take_updates(step_, stage);
  ++steps_;
  take_outputs(stage, step_, steps_, request_.prompt.size() + steps_ - 1, 1);
}

bool SequenceTask::next(Stage& stage) {
  if (stopped_) return false;
  if (taken_ < request_.prompt.size()) {
    // One pass is under way at a time: where it does not end, the tokens before it stay.
    if (passes_ > ended_) return false;
    feed_stage(stage);
    return true;
  }
  const uint64_t ahead = passes_ + steps_ - std::max(ended_, passes_);
  if (steps_ + 1 >= request_.max_new_tokens || ahead >= kAhead) return false;
  if (request_.grammar && ended_ < passes_ + steps_) return false;
  step_stage(stage);
  return true;
}

template <typename Call>
void SequenceTask::by_grammar(const Call& call) {
  if (!request_.grammar) return;
  try {
    call(*request_.grammar);
  } catch (const ModelError&) {
    refused_ = std::current_exception();
    stopped_ = true;
  }
}

void SequenceTask::set_mask() {
  by_grammar([&](CompletionGrammar& grammar) {
    const std::optional<std::span<const uint32_t>> mask = grammar.next();
    if (mask) slots_->set_mask(0, *mask);
    complete_ = !mask;
    stopped_ = stopped_ || complete_;
  });
}

void SequenceTask::take(const SequenceSlots::Choice& choice) {
  if (!choice) {
    lost_ = stopped_ = true;
    return;
  }
  ids_.push_back(*choice);
  by_grammar([&](CompletionGrammar& grammar) { grammar.take(*choice); });
  if (refused_) return;
  if (request_.on_token && !request_.on_token(*choice)) stopped_ = true;
  if (std::ranges::count(request_.stops, *choice) > 0 || ids_.size() >= request_.max_new_tokens)
    stopped_ = true;
  set_mask();
}

void SequenceTask::ended(uint64_t stages) {
  while (ended_ < stages) {
    const bool prompt = ended_++ < passes_;
    if (prompt) {
      const SequenceSlots::Choice choice = slots_->end_feed(feed_, 0, fed_);
      if (request_.on_prompt) request_.on_prompt(slots_->length(0), request_.prompt.size());
      if (feed_.pass.result == PassOutput::kChoice && !stopped_) take(choice);
    } else if (!stopped_) {
      take(slots_->end_step(step_, 0));
    }
  }
  done_ = stopped_ && ended_ == passes_ + steps_;
}

std::vector<uint32_t> SequenceTask::finish() {
  finished_ = true;
  slots_->lend(false);
  if (refused_ || !lost_) {
    // What was given and has not ended, or ended behind the last token, has changed the state.
    const bool past = passes_ + steps_ > ended_ || passes_ + ids_.size() < ended_ + 1;
    slots_->end(0, !past || slots_->can_draft());
    if (refused_) std::rethrow_exception(refused_);
    return std::move(ids_);
  }
  try {
    slots_->refuse(0);
  } catch (...) {
    slots_->end(0, false);
    throw;
  }
}

}  // namespace mulciber
