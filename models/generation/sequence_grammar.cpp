// Decoding with a grammar: the CPU reads each choice before the next step.
#include <algorithm>

#include "models/generation/completion_grammar.h"
#include "models/generation/sequence_batch.h"
#include "models/generation/sequence_run.h"

namespace mulciber {

void SequenceBatch::set_masks(Run& run) {
  run.new_masks.resize(shape().rows);
  const auto set = [&](uint32_t row, std::span<const uint32_t> mask) {
    if (set_mask(state_.words(), state_.layout().state, row, mask)) run.new_masks[row] = true;
  };
  for (uint32_t row = 0; row < shape().rows; ++row) {
    CompletionGrammar* grammar = run.grammar(row);
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
  const SampleStateLayout& state = state_.layout().state;
  if (!run.uploader) run.uploader.emplace(state_.device());
  state_.upload(*run.uploader, state_.layout().last.word, state.history.word);
  for (uint32_t row = 0; row < shape().rows; ++row) {
    const ControlArray<uint32_t> mask = state.mask_of(row);
    if (run.new_masks[row]) state_.upload(*run.uploader, mask.word, mask.end());
    run.new_masks[row] = false;
  }
  run.uploader->finish();
}

void SequenceBatch::decode_by_grammar(Run& run, Program& step) {
  const SampleStateLayout& state = state_.layout().state;
  while (run.result.steps + 1 < run.request.max_new_tokens && !run.is_cancelled()) {
    const auto begin = Clock::now();
    set_masks(run);
    for (uint32_t row = 0; row < shape().rows; ++row)
      state_.words().set(state.stopped, row, run.states[row]);
    if (std::ranges::count(run.states, uint32_t{SAMPLE_RUNNING}) == 0) return;
    push_step(run);
    run.result.grammar_seconds += seconds_since(begin);
    step.run();
    state_.download(state.history.end());
    for (uint32_t row = 0; row < shape().rows; ++row)
      run.states[row] = state_.words().get(state.stopped, row);
    drain(run, ++run.result.steps);
  }
}

}  // namespace mulciber
