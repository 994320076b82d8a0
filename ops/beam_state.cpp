// The state of beam search: the CPU plans, writes and reads it.
#include <fmt/format.h>

#include <cmath>

#include "mulciber/error.h"
#include "ops/search.h"

namespace mulciber {
namespace {

constexpr uint32_t kMostBeams = 32;  // top_k() gives two candidates for each at least
// Score of the copies of the first beam before the first step; the number is transformers'.
constexpr float kCopyScore = -1e9f;

[[noreturn]] void refuse_beams(const std::string& where, std::string problem, std::string remedy) {
  throw ShapeError(where, std::move(problem), std::move(remedy));
}

[[noreturn]] void refuse_state() {
  refuse_beams("beam search", "control holds no state of this layout", "pass control as read back");
}

}  // namespace

BeamStateLayout plan_beam_state(ControlLayout& control, uint32_t batch, uint32_t beams,
                                uint32_t context, const BeamRoom& room) {
  if (batch == 0 || beams == 0 || context < 2 || beams > kMostBeams) {
    refuse_beams("beam search", fmt::format("batch {}, {} beams, {} tokens", batch, beams, context),
                 fmt::format("use 1 to {} beams, and room for 2 tokens or more", kMostBeams));
  }
  const uint64_t rows = uint64_t{batch} * beams;
  BeamStateLayout layout;
  layout.batch = batch;
  layout.beams = beams;
  layout.context = context;
  layout.search = control.add<shader::BeamSearch>(1);
  layout.banned = control.add_list(room.banned);
  layout.ends = control.add_list(room.ends);
  layout.room = room;
  layout.items = control.add<shader::BeamItem>(batch);
  layout.finished = control.add<shader::BeamFinished>(rows);
  layout.positions = control.add<uint32_t>(rows);
  layout.tokens = control.add<uint32_t>(rows);
  layout.scores = control.add<float>(rows);
  layout.ancestry = control.add<uint32_t>(rows * context);
  layout.history_tokens = control.add<uint32_t>(rows * context);
  layout.history_parents = control.add<uint32_t>(rows * context);
  if (room.words > 0) layout.words = control.add<uint32_t>(1 + room.words + room.word_ids);
  layout.forbidden = control.add<uint32_t>(rows * layout.forbidden_row());
  return layout;
}

namespace {

/// Writes banned words: how many sequences, where each ends among the ids, and the ids.
void write_words(ControlWords& control, const BeamStateLayout& layout,
                 const std::vector<std::vector<uint32_t>>& words) {
  const BeamRoom& room = layout.room;
  uint32_t count = 0, end = 0;
  for (const std::vector<uint32_t>& word : words) {
    if (count == room.words || word.empty() || word.size() > room.word_ids - end)
      refuse_beams("beam search",
                   fmt::format("{} forbidden sequences do not fit a state for {} of {} ids in all",
                               words.size(), room.words, room.word_ids),
                   "plan a larger state, and sequences of one id or more");
    for (uint32_t id : word) control.set(layout.words, 1 + room.words + end++, id);
    control.set(layout.words, 1 + count++, end);
  }
  if (room.words > 0) control.set(layout.words, 0, count);
}

void check_settings(const BeamStateLayout& layout, const BeamSettings& settings) {
  if (settings.banned.size() > layout.room.banned || settings.ends.size() > layout.room.ends ||
      settings.max_length < 2 || settings.max_length > layout.context) {
    refuse_beams(
        "beam search",
        fmt::format("{} banned ids, {} that end and a maximum length of {} do not fit a state "
                    "for {}, {} and {} tokens",
                    settings.banned.size(), settings.ends.size(), settings.max_length,
                    layout.room.banned, layout.room.ends, layout.context),
        "plan a larger state, and a maximum length of 2 or more");
  }
  if (settings.ngram > 0 && !layout.room.ngrams)
    refuse_beams("beam search", "the state has no room for what would repeat", "plan it for that");
}

}  // namespace

void initialize_beam_state(ControlWords& control, const BeamStateLayout& layout,
                           const BeamSettings& settings) {
  check_settings(layout, settings);
  control.set(layout.search, 0,
              {.unfinished = layout.batch,
               .ngram = settings.ngram,
               .pad = settings.pad,
               .length_penalty = settings.length_penalty,
               .early_stopping = static_cast<uint32_t>(settings.early_stopping)});
  control.fill(layout.banned, 0);
  control.set_list(layout.banned, settings.banned);
  control.fill(layout.ends, 0);
  control.set_list(layout.ends, settings.ends);
  control.fill(layout.words, 0);
  write_words(control, layout, settings.words);
  control.fill(layout.history_tokens, 0);
  control.fill(layout.history_parents, 0);
  for (uint32_t item = 0; item < layout.batch; ++item) begin_item(control, layout, item, settings);
}

namespace {

/// Clears the state of an item before its first step, except for its rules.
void clear_item(ControlWords& control, const BeamStateLayout& layout, uint32_t item,
                uint32_t token) {
  if (control.words().size() < layout.forbidden.end() || item >= layout.batch) refuse_state();
  const uint32_t first_row = item * layout.beams;
  control.fill(layout.finished.part(first_row, layout.beams), {});
  control.fill(layout.positions.part(first_row, layout.beams), 0);
  control.fill(layout.tokens.part(first_row, layout.beams), token);
  control.fill(layout.forbidden.part(uint64_t{first_row} * layout.forbidden_row(),
                                     uint64_t{layout.beams} * layout.forbidden_row()),
               0xffffffff);
  for (uint32_t row = first_row; row < first_row + layout.beams; ++row) {
    control.set(layout.scores, row, row == first_row ? 0.0f : kCopyScore);
    control.fill(layout.ancestry.part(uint64_t{row} * layout.context, layout.context), row);
    control.set(layout.history_tokens, row, token);
    control.set(layout.history_parents, row, row);
  }
}

}  // namespace

void begin_item(ControlWords& control, const BeamStateLayout& layout, uint32_t item,
                const BeamSettings& settings) {
  check_settings(layout, settings);
  clear_item(control, layout, item, settings.start);
  control.set(layout.items, item,
              {.status = BEAM_SEARCHES,
               .last_position = settings.max_length - 1,
               .rules = {.last = settings.forced_last,
                         .first = settings.forced_first,
                         .late_from = settings.least_length}});
  for (uint32_t row = item * layout.beams; row < (item + 1) * layout.beams; ++row) {
    // Forbids what may not follow the start token: words of one id, and the last id of words of
    // two.
    const uint32_t first = row * layout.forbidden_row();
    for (uint32_t word = 0; word < settings.words.size(); ++word) {
      const std::vector<uint32_t>& ids = settings.words[word];
      if (ids.size() == 1 || (ids.size() == 2 && ids.front() == settings.start))
        control.set(layout.forbidden, first + word, ids.back());
    }
    if (settings.ngram == 1)
      control.set(layout.forbidden, first + layout.room.words, settings.start);
  }
}

void free_item(ControlWords& control, const BeamStateLayout& layout, uint32_t item) {
  clear_item(control, layout, item, control.get(layout.search).pad);
  control.set(layout.items, item, {.status = BEAM_DONE});
}

uint32_t count_unfinished(ControlWords& control, const BeamStateLayout& layout) {
  shader::BeamSearch search = control.get(layout.search);
  search.unfinished = 0;
  for (uint32_t item = 0; item < layout.batch; ++item)
    search.unfinished += control.get(layout.items, item).status == BEAM_SEARCHES;
  control.set(layout.search, 0, search);
  return search.unfinished;
}

namespace {

/// The ids of positions 1 to `step` of the hypothesis in row `row` at that step.
std::vector<uint32_t> history_of(const BeamStateLayout& layout, const ControlWords& control,
                                 uint32_t row, uint32_t step) {
  const uint32_t rows = layout.batch * layout.beams;
  if (step >= layout.context) refuse_state();
  std::vector<uint32_t> ids(step);
  for (uint32_t position = step; position > 0; --position) {
    if (row >= rows) refuse_state();
    ids[position - 1] = control.get(layout.history_tokens, position * rows + row);
    row = control.get(layout.history_parents, position * rows + row);
  }
  return ids;
}

void check_words(const BeamStateLayout& layout, const ControlWords& control, uint32_t item) {
  if (control.words().size() < layout.history_parents.end() || item >= layout.batch) refuse_state();
}

}  // namespace

std::vector<Hypothesis> finished_hypotheses(const BeamStateLayout& layout,
                                            const ControlWords& control, uint32_t item) {
  check_words(layout, control, item);
  const uint32_t count = control.get(layout.items, item).count;
  if (count > layout.beams) refuse_state();
  std::vector<Hypothesis> hypotheses(count);
  for (uint32_t i = 0; i < count; ++i) {
    const auto found = control.get(layout.finished, item * layout.beams + i);
    if (found.length < found.step || found.length > found.step + 1) refuse_state();
    hypotheses[i].score = found.score;
    hypotheses[i].ids = history_of(layout, control, found.row, found.step);
    if (found.length > found.step) hypotheses[i].ids.push_back(found.end);
  }
  return hypotheses;
}

std::vector<Hypothesis> running_hypotheses(const BeamStateLayout& layout,
                                           const ControlWords& control, uint32_t item) {
  check_words(layout, control, item);
  if (control.get(layout.items, item).status != BEAM_SEARCHES) return {};
  const uint32_t position = control.get(layout.positions, item * layout.beams);
  const float length = std::max(static_cast<float>(position), 1.0f),
              penalty = control.get(layout.search).length_penalty;
  std::vector<Hypothesis> hypotheses;
  for (uint32_t row = item * layout.beams; row < (item + 1) * layout.beams; ++row) {
    const float sum = control.get(layout.scores, row);
    // Skip beams for which no token was left, and copies of the start.
    if (!(sum > kCopyScore / 2)) continue;
    hypotheses.push_back(
        {history_of(layout, control, row, position), sum / std::pow(length, penalty)});
  }
  return hypotheses;
}

void keep_items(const BeamStateLayout& from, const ControlWords& control,
                std::span<const uint32_t> items, const BeamStateLayout& to, ControlWords& kept) {
  const uint32_t beams = from.beams;
  if (control.words().size() < from.forbidden.end() || kept.words().size() < to.forbidden.end() ||
      to.beams != beams || to.context != from.context || to.room != from.room ||
      items.size() > to.batch)
    refuse_state();
  const uint32_t rows = from.batch * beams, kept_rows = to.batch * beams;
  const auto copy = [&](const ControlArray<uint32_t>& source, uint64_t first,
                        const ControlArray<uint32_t>& target, uint64_t to_first, uint64_t count) {
    kept.set(target.part(to_first, count), control.values(source.part(first, count)));
  };
  kept.set(to.search, 0, control.get(from.search));
  copy(from.banned, 0, to.banned, 0, from.banned.count);
  copy(from.ends, 0, to.ends, 0, from.ends.count);
  copy(from.words, 0, to.words, 0, from.words.count);
  kept.fill(to.history_tokens, 0);
  kept.fill(to.history_parents, 0);
  for (uint32_t slot = 0; slot < to.batch; ++slot) free_item(kept, to, slot);
  for (uint32_t slot = 0; slot < items.size(); ++slot) {
    const uint32_t item = items[slot];
    if (item >= from.batch) refuse_state();
    const uint32_t old_row = item * beams, new_row = slot * beams;
    const uint32_t position = control.get(from.positions, old_row);
    if (position >= from.context) refuse_state();
    // An item refers to its own rows only.
    const auto moved = [&](uint32_t row) {
      if (row - old_row >= beams) refuse_state();
      return row - old_row + new_row;
    };
    kept.set(to.items, slot, control.get(from.items, item));
    copy(from.positions, old_row, to.positions, new_row, beams);
    copy(from.tokens, old_row, to.tokens, new_row, beams);
    copy(from.forbidden, uint64_t{old_row} * from.forbidden_row(), to.forbidden,
         uint64_t{new_row} * to.forbidden_row(), uint64_t{beams} * to.forbidden_row());
    for (uint32_t beam = 0; beam < beams; ++beam) {
      shader::BeamFinished finished = control.get(from.finished, old_row + beam);
      if (beam < control.get(from.items, item).count) finished.row = moved(finished.row);
      kept.set(to.finished, new_row + beam, finished);
      kept.set(to.scores, new_row + beam, control.get(from.scores, old_row + beam));
      const uint32_t row = old_row + beam, kept_row = new_row + beam;
      for (uint32_t t = 0; t <= position; ++t) {
        kept.set(to.ancestry, kept_row * to.context + t,
                 moved(control.get(from.ancestry, row * from.context + t)));
        kept.set(to.history_tokens, t * kept_rows + kept_row,
                 control.get(from.history_tokens, t * rows + row));
        kept.set(to.history_parents, t * kept_rows + kept_row,
                 moved(control.get(from.history_parents, t * rows + row)));
      }
    }
  }
  count_unfinished(kept, to);
}

}  // namespace mulciber
