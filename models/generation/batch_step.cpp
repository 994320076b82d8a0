// A decode step over all sequences whose prompt is prefilled: which take part, their draft tokens,
// and the choices that follow.
#include <algorithm>
#include <utility>

#include "models/generation/decoding.h"
#include "models/generation/generation_batch.h"
#include "models/generation/prompt_lookup.h"
#include "mulciber/error.h"

namespace mulciber {

void GenerationBatch::close_ranks() {
  const auto count = static_cast<uint32_t>(std::ranges::count_if(by_slot, &Slot::decodes));
  const uint32_t wanted = slots->step_slots(count);
  uint32_t free = 0;
  for (uint32_t slot = wanted; slot < by_slot.size(); ++slot) {
    if (!by_slot[slot].decodes) continue;
    while (by_slot[free].decodes) ++free;
    slots->exchange(slot, free);
    if (draft_model) draft_model->exchange(slot, free);
    std::swap(by_slot[slot], by_slot[free]);
  }
}

bool GenerationBatch::decode() {
  // The oldest come first: the newest are preempted.
  std::vector<uint32_t> decoding;
  for (uint32_t slot = 0; slot < by_slot.size(); ++slot)
    if (by_slot[slot].decodes) decoding.push_back(slot);
  std::ranges::sort(decoding, {}, [&](uint32_t slot) { return by_slot[slot].sequence->number; });
  for (const uint32_t slot : decoding)
    if (by_slot[slot].decodes) make_room(slot, 1);
  close_ranks();
  decoding.clear();
  for (uint32_t slot = 0; slot < by_slot.size(); ++slot)
    if (by_slot[slot].decodes) decoding.push_back(slot);
  if (decoding.empty()) return false;
  const std::vector<SequenceSlots::Draft> drafts = drafts_to_verify(decoding);
  const auto [count, together] = drafts.empty() ? steps_ahead(decoding) : Steps();
  const std::vector<SequenceSlots::Choice> choices =
      count > 1 ? slots->steps(decoding, count, together) : slots->step(decoding, drafts);
  statistics.steps += count;
  statistics.row_steps += uint64_t{count} * decoding.size();
  for (size_t i = 0; i < decoding.size(); ++i) take(decoding[i], choices[i]);
  // Callbacks come in the order of the steps, so that one may cancel any sequence.
  for (uint32_t step = 1; step < count; ++step)
    for (const uint32_t slot : decoding)
      if (takes_tokens(slot)) take(slot, slots->follow(slot).value());
  for (const SequenceSlots::Draft& some : drafts) follow(some);
  return true;
}

bool GenerationBatch::takes_tokens(uint32_t slot) const {
  return by_slot[slot].decodes && !by_slot[slot].sequence->cancelled;
}

GenerationBatch::Steps GenerationBatch::steps_ahead(std::span<const uint32_t> decoding) {
  const bool prefills =
      std::ranges::any_of(by_slot, [](const Slot& one) { return one.sequence && !one.decodes; });
  if (prefills || !waiting.empty()) return {};
  uint32_t together = SequenceSlots::kMostSteps, most = UINT32_MAX;
  for (const uint32_t slot : decoding) {
    const BatchSequence& sequence = *by_slot[slot].sequence;
    const SequenceRequest& request = sequence.request;
    const auto said = static_cast<uint32_t>(sequence.completion.so_far().ids.size());
    if (sequence.grammar || request.log_probabilities || request.drafts() || sequence.replays())
      return {};
    together = std::min(together, request.steps_per_submission > 0 ? request.steps_per_submission
                                                                   : steps_per_submission);
    most = std::min(most, context - slots->length(slot));
    if (request.max_new_tokens > 0) most = std::min(most, request.max_new_tokens - said);
  }
  const Steps steps = {std::min(steps_at_once(*device, together), most), together};
  // Where pages are scarce, no sequence is preempted for later steps.
  const bool fits = std::ranges::all_of(
      decoding, [&](uint32_t slot) { return slots->reserve(slot, steps.count); });
  return fits ? steps : Steps();
}

uint32_t GenerationBatch::most_draft_tokens(uint32_t slot) const {
  const BatchSequence& sequence = *by_slot[slot].sequence;
  const SequenceRequest& request = sequence.request;
  const std::vector<uint32_t>& said = sequence.completion.so_far().ids;
  // During replay there are no draft tokens: the sequence need not choose now what it replays.
  if (sequence.replays()) return 0;
  uint32_t most = request.draft_tokens > 0 ? request.draft_tokens : kMostDraftTokens;
  // One more token is chosen behind the draft tokens.
  most = std::min(most, context - slots->length(slot) - 1);
  if (request.max_new_tokens > 0)
    most = std::min(most, request.max_new_tokens - static_cast<uint32_t>(said.size()) - 1);
  return most;
}

std::vector<std::vector<uint32_t>> GenerationBatch::draft_tokens_behind(
    std::span<const uint32_t> decoding, size_t rows) {
  std::vector<std::vector<uint32_t>> found(decoding.size());
  if (draft_model) {
    std::vector<BatchDraft::Sequence> sequences;
    std::vector<size_t> numbers;
    const auto share = static_cast<uint32_t>((rows + decoding.size() - 1) / decoding.size());
    for (size_t i = 0; i < decoding.size(); ++i) {
      const BatchSequence& sequence = *by_slot[decoding[i]].sequence;
      uint32_t most = std::min(most_draft_tokens(decoding[i]), share);
      if (sequence.request.draft_tokens == 0) most = std::min(most, sequence.drafted);
      // The draft model sees no images.
      if (!sequence.request.draft || !sequence.tiles.empty() || most == 0) continue;
      sequences.push_back({.slot = decoding[i],
                           .ids = sequence.ids(),
                           .most = most,
                           .sampling = sequence.request.sampling,
                           .stream = sequence.request.stream,
                           .biases = sequence.request.biases});
      numbers.push_back(i);
    }
    std::vector<std::vector<uint32_t>> drafted = draft_model->draft(sequences);
    for (size_t i = 0; i < numbers.size(); ++i) found[numbers[i]] = std::move(drafted[i]);
  }
  for (size_t i = 0; i < decoding.size(); ++i) {
    BatchSequence& sequence = *by_slot[decoding[i]].sequence;
    sequence.by_draft = !found[i].empty();
    if (sequence.by_draft || sequence.request.prompt_lookup == 0) continue;
    if (const uint32_t most = most_draft_tokens(decoding[i]); most > 0)
      found[i] = prompt_lookup(sequence.ids(), sequence.request.prompt_lookup, most);
  }
  return found;
}

std::vector<SequenceSlots::Draft> GenerationBatch::drafts_to_verify(
    std::span<const uint32_t> decoding) {
  std::vector<uint32_t> rows;
  for (uint32_t slot = 0; slot < by_slot.size() && rows.size() < draft_rows; ++slot)
    if (!by_slot[slot].sequence) rows.push_back(slot);
  for (uint32_t row = slots->shape().slots; row < slots->shape().rows() && rows.size() < draft_rows;
       ++row)
    rows.push_back(row);
  std::vector<SequenceSlots::Draft> drafts;
  if (rows.empty() || !slots->can_draft()) return drafts;
  const std::vector<std::vector<uint32_t>> found = draft_tokens_behind(decoding, rows.size());
  for (const uint32_t slot : decoding)
    drafts.push_back({.slot = slot, .ids = {}, .rows = {}, .masks = {}});
  // Rows are given round-robin: the first draft tokens of a sequence are accepted most often.
  for (size_t turn = 0, given = 0; given < rows.size(); ++turn) {
    const size_t before = given;
    for (size_t i = 0; i < found.size() && given < rows.size(); ++i) {
      if (turn >= found[i].size()) continue;
      drafts[i].ids.push_back(found[i][turn]);
      drafts[i].rows.push_back(rows[given++]);
    }
    if (given == before) break;
  }
  // Where pages are scarce, no sequence is preempted for draft tokens.
  std::erase_if(drafts, [&](SequenceSlots::Draft& some) {
    if (!some.ids.empty()) set_masks(some);
    return some.ids.empty() ||
           !slots->reserve(some.slot, 1 + static_cast<uint32_t>(some.ids.size()));
  });
  for (const SequenceSlots::Draft& some : drafts) {
    statistics.draft_tokens += some.ids.size();
    by_slot[some.slot].sequence->draft_tokens += some.ids.size();
  }
  return drafts;
}

void GenerationBatch::set_masks(SequenceSlots::Draft& draft) const {
  const std::optional<CompletionGrammar>& own = by_slot[draft.slot].sequence->grammar;
  if (!own) return;
  CompletionGrammar grammar = *own;
  try {
    for (const uint32_t id : draft.ids) {
      if (!grammar.allows(id)) break;
      grammar.take(id);
      const std::optional<std::span<const uint32_t>> mask = grammar.next();
      if (!mask) break;  // the sequence is complete then
      draft.masks.emplace_back(mask->begin(), mask->end());
    }
  } catch (const ModelError&) {
    // No error is reported for draft tokens: it comes again if the sequence chooses them.
  }
  draft.ids.resize(draft.masks.size());
  draft.rows.resize(draft.masks.size());
}

void GenerationBatch::follow(const SequenceSlots::Draft& draft) {
  const uint32_t slot = draft.slot;
  size_t taken = 0;
  while (takes_tokens(slot)) {
    BatchSequence& sequence = *by_slot[slot].sequence;
    const std::optional<SequenceSlots::Choice> choice = slots->follow(slot);
    if (!choice) {
      if (!sequence.by_draft) return;
      // Source: transformers' heuristic for assisted generation.
      sequence.drafted = taken == draft.ids.size()
                             ? std::min(sequence.drafted + 2, kMostDraftTokens)
                             : std::max(sequence.drafted, 2u) - 1;
      return;
    }
    ++taken;
    ++statistics.accepted_tokens;
    ++sequence.accepted;
    take(slot, *choice);
  }
}

}  // namespace mulciber
