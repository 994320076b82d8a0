#include "ops/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "mulciber/error.h"
#include "ops/row_slices.h"
#include "runtime/op.h"

namespace mulciber {
namespace {

constexpr uint32_t kMostCandidates = 64;
// Score of the beams that are copies of the first before the first step: transformers' number.
constexpr float kCopyScore = -1e9f;

[[noreturn]] void refuse(const std::string& where, std::string problem, std::string remedy) {
  throw ShapeError(where, std::move(problem), std::move(remedy));
}

}  // namespace

Tensor top_k(ProgramBuilder& builder, const Tensor& logits, uint32_t k, const Tensor& control,
             const TokenRules& rules) {
  std::string where = builder.path() + ": top k";
  uint64_t vocabulary = logits.shape.columns(), rows = logits.shape.rows();
  if (logits.type != DataType::kF32 || logits.shape.rank() == 0 || vocabulary == 0) {
    refuse(where, fmt::format("logits are {} {}", name_of(logits.type), logits.shape.to_string()),
           "pass f32 rows of at least one column");
  }
  if (k == 0 || k > kMostCandidates || k > vocabulary) {
    refuse(where, fmt::format("{} of {} asked for", k, vocabulary),
           fmt::format("ask for 1 to {}", std::min<uint64_t>(kMostCandidates, vocabulary)));
  }
  if (!fits(rules.banned, 1, control) || !fits(rules.position, 1, control) ||
      !fits(rules.by_position, 1, control) || (rules.ends && !fits(*rules.ends, 1, control)) ||
      (rules.forbidden && !fits(*rules.forbidden, rows * rules.forbidden_row, control))) {
    refuse(where,
           fmt::format("the rules, at words {}, {} and {}, do not stand in control, {} {}",
                       rules.banned.word, rules.position.word, rules.by_position.word,
                       name_of(control.type), control.shape.to_string()),
           "control must be u32 and hold the rules");
  }
  Tensor result = builder.activation({rows, k, 2}, DataType::kU32);
  ShapeFacts facts = vocabulary % 4 == 0 ? kColumnsMultipleOf4 : kAnyShape;
  if (vocabulary >= 256) facts |= kColumnsAtLeast256;
  if (rules.banned_capacity() <= 64) facts |= kFewBanned;
  facts |= builder.rows_as(rows) <= 8 ? kRowsAtMost8 : kRowsAbove8;
  const Kernel& kernel = builder.select({Op::kTopK, {DataType::kF32, DataType::kF32}, facts});
  // Rows need not begin where descriptors may: a slice is bound from the aligned byte before its
  // first row.
  uint64_t row_bytes = vocabulary * 4, alignment = builder.capabilities().storage_alignment;
  uint64_t range = builder.capabilities().max_storage_range, step = rows;
  if (logits.bytes() > range) {
    step = (range - std::min(range, alignment)) / row_bytes;
    if (step == 0) step = builder.rows_per_binding(row_bytes);
  }
  for (uint64_t row = 0; row < rows; row += step) {
    uint64_t count = std::min(step, rows - row);
    Tensor part = logits.row_slice(row, count);
    uint64_t before = alignment > 0 ? part.byte_offset % alignment : 0;
    part.byte_offset -= before;
    part.shape = {(before + count * row_bytes) / 4};
    Node node;
    node.kernel = &kernel;
    node.buffers = {{part, Access::kRead}, {control, Access::kRead}, {result, Access::kWrite}};
    shader::TopKParams params{};
    params.rows = static_cast<uint32_t>(count);
    params.vocabulary = static_cast<uint32_t>(vocabulary);
    params.k = k;
    params.first = static_cast<uint32_t>(before / 4);
    params.result_row = static_cast<uint32_t>(row);
    params.banned = rules.banned.word;
    params.banned_capacity = rules.banned_capacity();
    params.position = rules.position.word;
    params.rules = rules.by_position.word;
    params.ends = rules.ends ? rules.ends->word : 0;
    params.ends_room = rules.ends ? rules.ends->count - 1 : 0;
    params.forbidden = rules.forbidden ? rules.forbidden->word : 0;
    params.forbidden_row = rules.forbidden ? rules.forbidden_row : 0;
    params.forbidden_first = rules.forbidden_first;
    node.set_params(params);
    node.groups = {groups_for(builder, count), 1, 1};
    node.work.bytes = count * row_bytes + count * k * 8;
    node.work.flops = count * vocabulary * 3;
    builder.add(std::move(node));
  }
  return result;
}

BeamStateLayout plan_beam_state(ControlLayout& control, uint32_t batch, uint32_t beams,
                                uint32_t context, const BeamRoom& room) {
  if (batch == 0 || beams == 0 || context < 2 || beams > kMostCandidates / 2) {
    refuse("beam search", fmt::format("batch {}, {} beams, {} tokens", batch, beams, context),
           fmt::format("use 1 to {} beams, and room for 2 tokens or more", kMostCandidates / 2));
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

/// How many sequences, where each ends among the ids, and the ids.
void write_words(ControlWords& control, const BeamStateLayout& layout,
                 const std::vector<std::vector<uint32_t>>& words) {
  const BeamRoom& room = layout.room;
  uint32_t count = 0, end = 0;
  for (const std::vector<uint32_t>& word : words) {
    if (count == room.words || word.empty() || word.size() > room.word_ids - end)
      refuse("beam search",
             fmt::format("{} forbidden sequences do not fit a state for {} of {} ids in all",
                         words.size(), room.words, room.word_ids),
             "plan a larger state, and sequences of one id or more");
    for (uint32_t id : word) control.set(layout.words, 1 + room.words + end++, id);
    control.set(layout.words, 1 + count++, end);
  }
  if (room.words > 0) control.set(layout.words, 0, count);
}

}  // namespace

void initialize_beam_state(ControlWords& control, const BeamStateLayout& layout,
                           const BeamSettings& settings) {
  if (settings.banned.size() > layout.room.banned || settings.ends.size() > layout.room.ends ||
      settings.max_length < 2 || settings.max_length > layout.context) {
    refuse("beam search",
           fmt::format("{} banned ids, {} that end and a maximum length of {} do not fit a state "
                       "for {}, {} and {} tokens",
                       settings.banned.size(), settings.ends.size(), settings.max_length,
                       layout.room.banned, layout.room.ends, layout.context),
           "plan a larger state, and a maximum length of 2 or more");
  }
  if (settings.ngram > 0 && !layout.room.ngrams)
    refuse("beam search", "the state has no room for what would repeat", "plan it for that");
  control.set(layout.search, 0,
              {.position = 0,
               .unfinished = layout.batch,
               .rules = {.last = settings.forced_last,
                         .first = settings.forced_first,
                         .late_from = settings.least_length},
               .ngram = settings.ngram,
               .pad = settings.pad,
               .last_position = settings.max_length - 1,
               .length_penalty = settings.length_penalty,
               .early_stopping = static_cast<uint32_t>(settings.early_stopping)});
  control.fill(layout.banned, 0);
  control.set_list(layout.banned, settings.banned);
  control.fill(layout.ends, 0);
  control.set_list(layout.ends, settings.ends);
  control.fill(layout.words, 0);
  write_words(control, layout, settings.words);
  control.fill(layout.forbidden, 0xffffffff);
  control.fill(layout.items, {});
  control.fill(layout.finished, {});
  control.fill(layout.tokens, settings.start);
  control.fill(layout.history_tokens, 0);
  control.fill(layout.history_parents, 0);
  const uint32_t rows = layout.batch * layout.beams;
  for (uint32_t row = 0; row < rows; ++row) {
    control.set(layout.scores, row, row % layout.beams == 0 ? 0.0f : kCopyScore);
    control.fill(layout.ancestry.part(uint64_t{row} * layout.context, layout.context), row);
    control.set(layout.history_tokens, row, settings.start);
    control.set(layout.history_parents, row, row);
    // Of the start alone a single token can repeat, and a sequence of two ids end.
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

namespace {

[[noreturn]] void refuse_state() {
  refuse("beam search", "control holds no state of this layout", "pass control as read back");
}

/// The ids of positions 1 to `step` of the hypothesis that stands in `row` there.
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
  const auto search = control.get(layout.search);
  const float length = std::max(static_cast<float>(search.position), 1.0f);
  std::vector<Hypothesis> hypotheses;
  for (uint32_t row = item * layout.beams; row < (item + 1) * layout.beams; ++row) {
    const float sum = control.get(layout.scores, row);
    // What no token was left for, and copies of the start.
    if (!(sum > kCopyScore / 2)) continue;
    hypotheses.push_back({history_of(layout, control, row, search.position),
                          sum / std::pow(length, search.length_penalty)});
  }
  return hypotheses;
}

namespace {

void check_control(const std::string& where, const Tensor& control, const BeamStateLayout& layout) {
  const uint64_t rows = uint64_t{layout.batch} * layout.beams;
  if (fits(layout.history_parents, rows * layout.context, control) &&
      fits(layout.forbidden, rows * layout.forbidden_row(), control))
    return;
  refuse(where,
         fmt::format("a state up to word {} does not fit control {} {}", layout.forbidden.end(),
                     name_of(control.type), control.shape.to_string()),
         "control must hold the state, as u32");
}

}  // namespace

void follow_beams(ProgramBuilder& builder, const Tensor& control, const BeamStateLayout& layout,
                  const Tensor& state) {
  const std::string where = builder.path() + ": follow beams";
  check_control(where, control, layout);
  const uint64_t rows = uint64_t{layout.batch} * layout.beams;
  if (size_of(state.type) != 4 || state.shape.rows() % rows != 0) {
    refuse(where, fmt::format("state is {} {}", name_of(state.type), state.shape.to_string()),
           fmt::format("it must have {} rows, or a multiple, of 32-bit elements", rows));
  }
  const uint64_t items = state.shape.rows() / layout.beams;
  const Capabilities& device = builder.capabilities();
  if (state.bytes() > device.max_storage_range) {
    refuse(where, fmt::format("{} bytes pass what one dispatch covers", state.bytes()),
           "use a smaller batch");
  }
  Node node;
  node.kernel = &builder.select({Op::kFollowBeams, {DataType::kF32, DataType::kF32}, kAnyShape});
  node.buffers = {{control, Access::kRead}, {state, Access::kReadWrite}};
  const auto columns = static_cast<uint32_t>(state.shape.columns());
  node.set_params(shader::FollowBeamsParams{layout.batch, columns, layout.search.index(),
                                            layout.items.index(), layout.history_parents.word});
  node.constants = {{BEAM_BEAMS, layout.beams}};
  const uint32_t invocations = local_size(*node.kernel, device);
  node.groups = {(columns + invocations - 1) / invocations, static_cast<uint32_t>(items), 1};
  node.work.bytes = 2 * state.bytes();
  builder.add(std::move(node));
}

void beam_step(ProgramBuilder& builder, const Tensor& candidates, const Tensor& control,
               const BeamStateLayout& layout, const Tensor& progress) {
  std::string where = builder.path() + ": beam step";
  uint64_t rows = uint64_t{layout.batch} * layout.beams;
  if (candidates.type != DataType::kU32 || candidates.shape.rank() != 3 ||
      candidates.shape[0] != rows || candidates.shape[1] == 0 || candidates.shape[2] != 2) {
    refuse(
        where,
        fmt::format("candidates are {} {}", name_of(candidates.type), candidates.shape.to_string()),
        fmt::format("they must be u32 ({}, {}, 2)", rows, 2 * layout.beams));
  }
  check_control(where, control, layout);
  if (progress.type != DataType::kU32 || progress.shape.elements() < 2) {
    refuse(where,
           fmt::format("progress is {} {}", name_of(progress.type), progress.shape.to_string()),
           "it must hold two words, as u32");
  }
  Node node;
  node.kernel = &builder.select({Op::kBeamStep, {DataType::kF32, DataType::kF32}, kAnyShape});
  node.buffers = {
      {candidates, Access::kRead}, {control, Access::kReadWrite}, {progress, Access::kWrite}};
  shader::BeamStepParams params{};
  params.batch = layout.batch;
  params.candidates = static_cast<uint32_t>(candidates.shape[1]);
  params.context = layout.context;
  params.search = layout.search.index();
  params.items = layout.items.index();
  params.finished = layout.finished.index();
  params.tokens = layout.tokens.word;
  params.scores = layout.scores.word;
  params.ancestry = layout.ancestry.word;
  params.history_tokens = layout.history_tokens.word;
  params.history_parents = layout.history_parents.word;
  params.ends = layout.ends.word;
  params.ends_room = layout.room.ends;
  params.words = layout.words.word;
  params.words_room = layout.room.words;
  params.forbidden = layout.forbidden.word;
  params.forbidden_row = layout.forbidden_row();
  node.set_params(params);
  node.constants = {{BEAM_BEAMS, layout.beams}};
  // Candidates once, and per row the scores, the token, its history, and half the ancestry on
  // average.
  node.work.bytes = candidates.bytes() + rows * 5 * 4 + rows * layout.context * 4;
  node.work.flops = rows * candidates.shape[1] * 2;
  builder.add(std::move(node));
}

}  // namespace mulciber
