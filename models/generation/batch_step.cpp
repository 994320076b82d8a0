// A decode step over all texts whose prompt is prefilled: which take part, their draft tokens, and
// the choices that follow.
#include <algorithm>
#include <utility>

#include "models/generation/batch_generator_impl.h"
#include "models/generation/draft_check.h"
#include "mulciber/error.h"

namespace mulciber {

void BatchGenerator::Impl::close_ranks() {
  const auto count = static_cast<uint32_t>(std::ranges::count_if(places, &Place::grows));
  const uint32_t wanted = slots->step_places(count);
  uint32_t free = 0;
  for (uint32_t slot = wanted; slot < places.size(); ++slot) {
    if (!places[slot].grows) continue;
    while (places[free].grows) ++free;
    slots->exchange(slot, free);
    if (draft_model) draft_model->exchange(slot, free);
    std::swap(places[slot], places[free]);
  }
}

bool BatchGenerator::Impl::decode() {
  // The oldest come first: the newest are preempted.
  std::vector<uint32_t> growing;
  for (uint32_t slot = 0; slot < places.size(); ++slot)
    if (places[slot].grows) growing.push_back(slot);
  std::ranges::sort(growing, {}, [&](uint32_t slot) { return places[slot].text->number; });
  for (const uint32_t slot : growing)
    if (places[slot].grows) make_room(slot, 1);
  close_ranks();
  growing.clear();
  for (uint32_t slot = 0; slot < places.size(); ++slot)
    if (places[slot].grows) growing.push_back(slot);
  if (growing.empty()) return false;
  const std::vector<SequenceSlots::Draft> drafts = drafts_to_verify(growing);
  const std::vector<SequenceSlots::Choice> choices = slots->step(growing, drafts);
  ++statistics.steps;
  statistics.row_steps += growing.size();
  for (size_t i = 0; i < growing.size(); ++i) take(growing[i], choices[i]);
  for (const SequenceSlots::Draft& some : drafts) follow(some);
  return true;
}

uint32_t BatchGenerator::Impl::most_draft_tokens(uint32_t slot) const {
  const BatchText& text = *places[slot].text;
  const BatchRequest& request = text.request;
  const std::vector<uint32_t>& said = text.answer.so_far().ids;
  // During replay there are no draft tokens: the text need not choose now what it replays.
  if (text.replayed < said.size()) return 0;
  uint32_t most = request.draft_tokens > 0 ? request.draft_tokens : kMostDraftTokens;
  // One more token is chosen behind the draft tokens.
  most = std::min(most, context - slots->length(slot) - 1);
  if (request.max_new_tokens > 0)
    most = std::min(most, request.max_new_tokens - static_cast<uint32_t>(said.size()) - 1);
  return most;
}

std::vector<std::vector<uint32_t>> BatchGenerator::Impl::draft_tokens_behind(
    std::span<const uint32_t> growing, size_t rows) {
  std::vector<std::vector<uint32_t>> found(growing.size());
  const auto ids_of = [&](uint32_t slot) {
    const BatchText& text = *places[slot].text;
    std::vector<uint32_t> ids = text.prompt;
    ids.insert(ids.end(), text.answer.so_far().ids.begin(), text.answer.so_far().ids.end());
    return ids;
  };
  if (draft_model) {
    std::vector<BatchDraft::Text> texts;
    std::vector<size_t> numbers;
    const auto share = static_cast<uint32_t>((rows + growing.size() - 1) / growing.size());
    for (size_t i = 0; i < growing.size(); ++i) {
      const BatchText& text = *places[growing[i]].text;
      uint32_t most = std::min(most_draft_tokens(growing[i]), share);
      if (text.request.draft_tokens == 0) most = std::min(most, text.drafted);
      // The draft model sees no images.
      if (!text.request.draft || !text.tiles.empty() || most == 0) continue;
      texts.push_back({.slot = growing[i],
                       .ids = ids_of(growing[i]),
                       .most = most,
                       .sampling = text.sampling,
                       .stream = text.request.stream,
                       .biases = text.biases});
      numbers.push_back(i);
    }
    std::vector<std::vector<uint32_t>> drafted = draft_model->draft(texts);
    for (size_t i = 0; i < numbers.size(); ++i) found[numbers[i]] = std::move(drafted[i]);
  }
  for (size_t i = 0; i < growing.size(); ++i) {
    BatchText& text = *places[growing[i]].text;
    text.by_draft = !found[i].empty();
    if (text.by_draft || text.request.prompt_lookup == 0) continue;
    if (const uint32_t most = most_draft_tokens(growing[i]); most > 0)
      found[i] = prompt_lookup(ids_of(growing[i]), text.request.prompt_lookup, most);
  }
  return found;
}

std::vector<SequenceSlots::Draft> BatchGenerator::Impl::drafts_to_verify(
    std::span<const uint32_t> growing) {
  std::vector<uint32_t> rows;
  for (uint32_t slot = 0; slot < places.size() && rows.size() < draft_rows; ++slot)
    if (!places[slot].text) rows.push_back(slot);
  std::vector<SequenceSlots::Draft> drafts;
  if (rows.empty() || !slots->can_draft()) return drafts;
  const std::vector<std::vector<uint32_t>> found = draft_tokens_behind(growing, rows.size());
  for (const uint32_t slot : growing)
    drafts.push_back({.slot = slot, .ids = {}, .rows = {}, .masks = {}});
  // Rows are given round-robin: the first draft tokens of a text are accepted most often.
  for (size_t turn = 0, given = 0; given < rows.size(); ++turn) {
    const size_t before = given;
    for (size_t i = 0; i < found.size() && given < rows.size(); ++i) {
      if (turn >= found[i].size()) continue;
      drafts[i].ids.push_back(found[i][turn]);
      drafts[i].rows.push_back(rows[given++]);
    }
    if (given == before) break;
  }
  // Where pages are scarce, no text is preempted for draft tokens.
  std::erase_if(drafts, [&](SequenceSlots::Draft& some) {
    if (!some.ids.empty()) set_masks(some);
    return some.ids.empty() ||
           !slots->reserve(some.slot, 1 + static_cast<uint32_t>(some.ids.size()));
  });
  for (const SequenceSlots::Draft& some : drafts) {
    statistics.draft_tokens += some.ids.size();
    places[some.slot].text->draft_tokens += some.ids.size();
  }
  return drafts;
}

void BatchGenerator::Impl::set_masks(SequenceSlots::Draft& draft) const {
  const std::optional<AnswerGrammar>& own = places[draft.slot].text->grammar;
  if (!own) return;
  AnswerGrammar grammar = *own;
  try {
    for (const uint32_t id : draft.ids) {
      if (!grammar.allows(id)) break;
      grammar.take(id);
      const std::optional<std::span<const uint32_t>> mask = grammar.next();
      if (!mask) break;  // the answer is complete then
      draft.masks.emplace_back(mask->begin(), mask->end());
    }
  } catch (const ModelError&) {
    // No error is reported for draft tokens: it comes again if the text chooses them.
  }
  draft.ids.resize(draft.masks.size());
  draft.rows.resize(draft.masks.size());
}

void BatchGenerator::Impl::follow(const SequenceSlots::Draft& draft) {
  const uint32_t slot = draft.slot;
  size_t taken = 0;
  while (places[slot].grows) {
    BatchText& text = *places[slot].text;
    const std::optional<SequenceSlots::Choice> choice = slots->follow(slot);
    if (!choice) {
      if (!text.by_draft) return;
      // Source: transformers' heuristic for assisted generation.
      text.drafted = taken == draft.ids.size() ? std::min(text.drafted + 2, kMostDraftTokens)
                                               : std::max(text.drafted, 2u) - 1;
      return;
    }
    ++taken;
    ++statistics.accepted_tokens;
    ++text.accepted;
    take(slot, *choice);
  }
}

}  // namespace mulciber
