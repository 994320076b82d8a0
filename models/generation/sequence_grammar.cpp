// Decoding with a grammar: the CPU reads each choice before the next step.
#include <algorithm>

#include "models/generation/answer_grammar.h"
#include "models/generation/sequence_batch.h"
#include "models/generation/sequence_run.h"

namespace mulciber {

void SequenceBatch::set_masks(Run& run) {
  run.new_masks.resize(shape_.rows);
  const auto set = [&](uint32_t row, std::span<const uint32_t> mask) {
    if (set_mask(words_, layout_.state, row, mask)) run.new_masks[row] = true;
  };
  for (uint32_t row = 0; row < shape_.rows; ++row) {
    AnswerGrammar* grammar = run.grammar(row);
    const bool chooses = run.states[row] == SAMPLE_RUNNING || run.states[row] == SAMPLE_IDLE;
    if (!grammar || !chooses || run.request.prompts[row].empty()) {
      set(row, {});
    } else if (const std::optional<std::span<const uint32_t>> mask = grammar->next()) {
      set(row, *mask);
    } else {
      run.states[row] = SAMPLE_STOP_ID;
    }
  }
}

void SequenceBatch::push_step(Run& run) {
  const SampleStateLayout& state = layout_.state;
  if (!run.uploader) run.uploader.emplace(device_);
  upload_words(*run.uploader, control_.view(), words_, layout_.last.word, state.history.word);
  for (uint32_t row = 0; row < shape_.rows; ++row) {
    const ControlArray<uint32_t> mask = state.mask_of(row);
    if (run.new_masks[row])
      upload_words(*run.uploader, control_.view(), words_, mask.word, mask.end());
    run.new_masks[row] = false;
  }
  run.uploader->finish();
}

void SequenceBatch::decode_by_grammar(Run& run, Program& step) {
  const SampleStateLayout& state = layout_.state;
  while (run.result.steps + 1 < run.request.max_new_tokens && !run.is_cancelled()) {
    const auto begin = Clock::now();
    set_masks(run);
    for (uint32_t row = 0; row < shape_.rows; ++row)
      words_.set(state.stopped, row, run.states[row]);
    if (std::ranges::count(run.states, uint32_t{SAMPLE_RUNNING}) == 0) return;
    push_step(run);
    run.result.grammar_seconds += seconds_since(begin);
    step.run();
    pull(state.history.end());
    for (uint32_t row = 0; row < shape_.rows; ++row)
      run.states[row] = words_.get(state.stopped, row);
    drain(run, ++run.result.steps);
  }
}

}  // namespace mulciber
