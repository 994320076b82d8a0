// Draft tokens in a decode step over slots: a row without a sequence of its own feeds a draft
// token, through the pages of the sequence behind which it may stand. The row computes what a step
// computes once that token is chosen, by the same kernels, and so to the same bits. Rejected draft
// tokens leave keys and values behind that nothing reads before the tokens that come at their
// positions write their own.
#include "models/generation/sequence_slots.h"

#include <algorithm>
#include <ranges>

namespace mulciber {
namespace {

bool has_penalties(const shader::SampleSettings& settings) {
  return settings.repetition_penalty != 1 || settings.presence_penalty != 0 ||
         settings.frequency_penalty != 0;
}

}  // namespace

void SequenceSlots::lend_rows(const Draft& draft) {
  const SampleStateLayout& state = state_.layout().state;
  const uint32_t slot = draft.slot, held = length(slot),
                 count = state_.words().get(state.counts, slot);
  const shader::SampleSettings settings = state_.words().get(state.settings, slot);
  const auto copied = [&](const ControlArray<uint32_t>& from, const ControlArray<uint32_t>& to) {
    const auto values = state_.words().values(from);
    state_.words().set(to, std::vector<uint32_t>(values.begin(), values.end()));
  };
  // The tokens that penalties look at. Each row has one more than the row before.
  std::vector<uint32_t> latest;
  if (has_penalties(settings)) {
    const uint32_t window = std::min(count, settings.penalty_window);
    const auto history = state_.words().values(state.history_of(slot).part(count - window, window));
    latest.assign(history.begin(), history.end());
  }
  for (uint32_t i = 0; i < draft.ids.size(); ++i) {
    const uint32_t row = draft.rows[i];
    state_.words().set(state.settings, row, settings);
    state_.words().set(state.positions, row, held + 1 + i);
    state_.words().set(state.tokens, row, draft.ids[i]);
    state_.words().set(state.fed, row, 1);
    state_.words().set(state.counts, row, count + 1 + i);
    state_.words().set(state.stopped, row, SAMPLE_RUNNING);
    const SampleStateLayout of_slot = part_of(state_.layout(), slot, 1).state,
                            of_row = part_of(state_.layout(), row, 1).state;
    if (has_penalties(settings)) {
      latest.push_back(draft.ids[i]);
      const auto first = count + 1 + i - static_cast<uint32_t>(latest.size());
      const ControlArray<uint32_t> known =
          of_row.history.part(first, static_cast<uint32_t>(latest.size()));
      state_.words().set(known, latest);
      push(known.word, known.end());
    }
    if (state.bias_capacity > 0 &&
        (state_.words().get(of_slot.biases) > 0 || state_.words().get(of_row.biases) > 0)) {
      copied(of_slot.biases, of_row.biases);
      push(of_row.biases.word, of_row.biases.end());
    }
    set_mask(row, draft.masks.empty() ? std::span<const uint32_t>() : draft.masks[i]);
    if (state_.layout().adapter_scales) {
      const auto scales_of = [&](uint32_t of) {
        const ControlArray<float> own = *part_of(state_.layout(), of, 1).adapter_scales;
        return ControlArray<uint32_t>{own.word, own.count};
      };
      copied(scales_of(slot), scales_of(row));
    }
    const ControlArray<uint32_t> pages = *part_of(state_.layout(), row, 1).pages;
    state_.words().fill(pages, 0);
    state_.words().set(pages, pages_.table(slot));
    push(pages.word, pages.end());
  }
  changed_ = true;
}

void SequenceSlots::take_back(const RowsPass& pass, const Draft& draft) {
  const SampleStateLayout& state = state_.layout().state;
  for (size_t i = draft.ids.size(); i-- > 0;) {
    const uint32_t row = draft.rows[i];
    checked_[draft.slot].left.push_back(
        {draft.ids[i], row, shown_choice(pass, row, state_.words().get(state.counts, row))});
    // The row is left as end() leaves a slot.
    state_.words().set(state.stopped, row, SAMPLE_IDLE);
    state_.words().set(state.fed, row, 0);
    state_.words().set(state.positions, row, 0);
    push_table(row);
  }
  changed_ = true;
}

void SequenceSlots::rewrite(uint32_t slot, std::span<const uint32_t> ids) {
  const SampleStateLayout& state = state_.layout().state;
  const std::span<const uint32_t> held = tokens(slot), wanted = ids.first(ids.size() - 1);
  const auto same = static_cast<uint32_t>(std::ranges::mismatch(wanted, held).in1 - wanted.begin());
  const std::span<const uint32_t> others = ids.subspan(same);
  const ControlArray<uint32_t> behind =
      state.history_of(slot).part(same, static_cast<uint32_t>(others.size()));
  state_.words().set(behind, others);
  push(behind.word, behind.end());
  state_.words().set(state.positions, slot, same);
  state_.words().set(state.counts, slot, same + 1);
  state_.words().set(state.tokens, slot, ids[same]);
  state_.words().set(state.fed, slot, 1);
  state_.words().set(state.stopped, slot, SAMPLE_RUNNING);
  changed_ = true;
}

std::optional<SequenceSlots::Choice> SequenceSlots::follow(uint32_t slot) {
  const SampleStateLayout& state = state_.layout().state;
  Checked& checked = checked_[slot];
  if (checked.steps > 0) {
    settle(ahead_.count - --checked.steps);
    const Choice choice = shown_choice(ahead_.pass, slot, state_.words().get(state.counts, slot));
    if (!choice) checked.steps = 0;
    return take_over(slot, choice);
  }
  if (checked.left.empty()) return std::nullopt;
  const Checked::Token next = checked.left.back();
  checked.left.pop_back();
  if (next.id != state_.words().get(state.tokens, slot)) {
    checked.left.clear();
    return std::nullopt;
  }
  checked.row = next.row;
  const Choice choice = take_over(slot, next.behind);
  if (choice && next.row != slot) {
    // The device wrote the choice to the history of the lent row alone.
    const ControlArray<uint32_t> last =
        state.history_of(slot).part(state_.words().get(state.counts, slot) - 1, 1);
    push(last.word, last.end());
    changed_ = true;
  }
  return choice;
}

}  // namespace mulciber
