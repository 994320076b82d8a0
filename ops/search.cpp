#include "ops/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "mulciber/error.h"
#include "ops/row_slices.h"
#include "runtime/op.h"
#include "shaders/beam.h"

namespace mulciber {
namespace {

constexpr uint32_t kMostCandidates = 64;
// Score of the beams that are copies of the first before the first step: transformers' number.
constexpr float kCopyScore = -1e9f;

[[noreturn]] void refuse(const std::string& where, std::string problem, std::string remedy) {
  throw ShapeError(where, std::move(problem), std::move(remedy));
}

uint32_t as_word(float value) { return std::bit_cast<uint32_t>(value); }

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
  uint64_t last_word =
      std::max({uint64_t{rules.banned_offset} + rules.banned_capacity,
                uint64_t{rules.position_offset}, uint64_t{rules.forced_offset} + 1});
  if (control.type != DataType::kU32 || last_word >= control.shape.elements()) {
    refuse(where,
           fmt::format("the rules end at word {}, control is {} {}", last_word,
                       name_of(control.type), control.shape.to_string()),
           "control must be u32 and hold the rules");
  }
  Tensor result = builder.activation({rows, k, 2}, DataType::kU32);
  ShapeFacts facts = vocabulary % 4 == 0 ? kColumnsMultipleOf4 : kAnyShape;
  if (vocabulary >= 256) facts |= kColumnsAtLeast256;
  if (rules.banned_capacity <= 64) facts |= kFewBanned;
  facts |= rows <= 8 ? kRowsAtMost8 : kRowsAbove8;
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
    params.banned_offset = rules.banned_offset;
    params.banned_capacity = rules.banned_capacity;
    params.position_offset = rules.position_offset;
    params.forced_offset = rules.forced_offset;
    node.set_params(params);
    node.groups = {groups_for(builder, count), 1, 1};
    node.work.bytes = count * row_bytes + count * k * 8;
    node.work.flops = count * vocabulary * 3;
    builder.add(std::move(node));
  }
  return result;
}

BeamStateLayout plan_beam_state(uint32_t first_word, uint32_t batch, uint32_t beams,
                                uint32_t context, uint32_t banned_capacity) {
  if (batch == 0 || beams == 0 || context < 2 || beams > kMostCandidates / 2) {
    refuse("beam search", fmt::format("batch {}, {} beams, {} tokens", batch, beams, context),
           fmt::format("use 1 to {} beams, and room for 2 tokens or more", kMostCandidates / 2));
  }
  uint64_t rows = uint64_t{batch} * beams;
  BeamStateLayout layout;
  layout.first_word = first_word;
  layout.batch = batch;
  layout.beams = beams;
  layout.context = context;
  layout.banned_capacity = banned_capacity;
  uint64_t next = first_word;
  auto take = [&](uint64_t words) {
    uint64_t at = next;
    next += words;
    return static_cast<uint32_t>(at);
  };
  layout.position = take(1);
  layout.unfinished = take(1);
  layout.forced = take(2);
  layout.settings = take(BEAM_SETTING_WORDS);
  layout.banned = take(1 + uint64_t{banned_capacity});
  layout.item_state = take(uint64_t{batch} * BEAM_ITEM_WORDS);
  layout.finished = take(rows * BEAM_FINISHED_WORDS);
  layout.tokens = take(rows);
  layout.scores = take(rows);
  layout.ancestry = take(rows * context);
  layout.history_tokens = take(rows * context);
  layout.history_parents = take(rows * context);
  if (next > std::numeric_limits<uint32_t>::max() / 4) {
    refuse("beam search",
           fmt::format("{} rows of {} tokens take {} words of state", rows, context,
                       next - first_word),
           "use a smaller batch or a shorter maximum length");
  }
  layout.words = static_cast<uint32_t>(next - first_word);
  return layout;
}

std::vector<uint32_t> initial_beam_state(const BeamStateLayout& layout,
                                         const BeamSettings& settings) {
  if (settings.banned.size() > layout.banned_capacity || settings.max_length < 2 ||
      settings.max_length > layout.context) {
    refuse("beam search",
           fmt::format("{} banned ids and a maximum length of {} do not fit a state for {} ids and "
                       "{} tokens",
                       settings.banned.size(), settings.max_length, layout.banned_capacity,
                       layout.context),
           "plan a larger state, and a maximum length of 2 or more");
  }
  std::vector<uint32_t> words(layout.words, 0);
  auto at = [&](uint32_t word) { return words.begin() + (word - layout.first_word); };
  *at(layout.unfinished) = layout.batch;
  *at(layout.forced) = settings.forced_index;
  *at(layout.forced + 1) = settings.forced_id;
  *at(layout.settings + BEAM_EOS) = settings.eos;
  *at(layout.settings + BEAM_PAD) = settings.pad;
  *at(layout.settings + BEAM_LAST_POSITION) = settings.max_length - 1;
  *at(layout.settings + BEAM_LENGTH_PENALTY) = as_word(settings.length_penalty);
  *at(layout.settings + BEAM_EARLY_STOPPING) = static_cast<uint32_t>(settings.early_stopping);
  *at(layout.banned) = static_cast<uint32_t>(settings.banned.size());
  std::copy(settings.banned.begin(), settings.banned.end(), at(layout.banned + 1));
  uint32_t rows = layout.batch * layout.beams;
  for (uint32_t row = 0; row < rows; ++row) {
    *at(layout.tokens + row) = settings.start;
    *at(layout.scores + row) = as_word(row % layout.beams == 0 ? 0.0f : kCopyScore);
    std::fill_n(at(layout.ancestry + row * layout.context), layout.context, row);
    *at(layout.history_tokens + row) = settings.start;
    *at(layout.history_parents + row) = row;
  }
  return words;
}

std::vector<Hypothesis> finished_hypotheses(const BeamStateLayout& layout,
                                            std::span<const uint32_t> state, uint32_t item) {
  auto corrupt = [] {
    refuse("beam search", "the words are not a state of this layout",
           "pass the state as read back");
  };
  if (state.size() < layout.words || item >= layout.batch) corrupt();
  auto at = [&](uint32_t word) { return state[word - layout.first_word]; };
  uint32_t rows = layout.batch * layout.beams;
  uint32_t count = at(layout.item_state + item * BEAM_ITEM_WORDS + BEAM_ITEM_COUNT);
  if (count > layout.beams) corrupt();
  std::vector<Hypothesis> hypotheses(count);
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t entry = layout.finished + (item * layout.beams + i) * BEAM_FINISHED_WORDS;
    uint32_t length = at(entry + BEAM_FINISHED_LENGTH);
    uint32_t row = at(entry + BEAM_FINISHED_ROW), step = at(entry + BEAM_FINISHED_STEP);
    if (step >= layout.context || length < step || length > step + 1) corrupt();
    hypotheses[i].score = std::bit_cast<float>(at(entry + BEAM_FINISHED_SCORE));
    std::vector<uint32_t>& ids = hypotheses[i].ids;
    if (length > step) ids.push_back(at(layout.settings + BEAM_EOS));
    for (uint32_t position = step; position > 0; --position) {
      if (row >= rows) corrupt();
      ids.push_back(at(layout.history_tokens + position * rows + row));
      row = at(layout.history_parents + position * rows + row);
    }
    std::reverse(ids.begin(), ids.end());
  }
  return hypotheses;
}

namespace {

void check_control(const std::string& where, const Tensor& control, const BeamStateLayout& layout) {
  if (control.type == DataType::kU32 &&
      uint64_t{layout.first_word} + layout.words <= control.shape.elements())
    return;
  refuse(where,
         fmt::format("a state of {} words from word {} does not fit control {} {}", layout.words,
                     layout.first_word, name_of(control.type), control.shape.to_string()),
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
  node.set_params(shader::FollowBeamsParams{layout.batch, columns, layout.position,
                                            layout.history_parents, layout.item_state});
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
  params.position = layout.position;
  params.unfinished = layout.unfinished;
  params.settings = layout.settings;
  params.tokens = layout.tokens;
  params.scores = layout.scores;
  params.ancestry = layout.ancestry;
  params.history_tokens = layout.history_tokens;
  params.history_parents = layout.history_parents;
  params.finished = layout.finished;
  params.item_state = layout.item_state;
  node.set_params(params);
  node.constants = {{BEAM_BEAMS, layout.beams}};
  // Candidates once, and per row the scores, the token, its history, and half the ancestry on
  // average.
  node.work.bytes = candidates.bytes() + rows * 5 * 4 + rows * layout.context * 4;
  node.work.flops = rows * candidates.shape[1] * 2;
  builder.add(std::move(node));
}

}  // namespace mulciber
