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

[[noreturn]] void refuse_search(const std::string& where, std::string problem, std::string remedy) {
  throw ShapeError(where, std::move(problem), std::move(remedy));
}

}  // namespace

Tensor top_k(ProgramBuilder& builder, const Tensor& logits, uint32_t k, const Tensor& control,
             const TokenRules& rules, uint64_t vocabulary) {
  std::string where = builder.path() + ": top k";
  const uint64_t stride = logits.shape.columns(), rows = logits.shape.rows();
  if (vocabulary == 0) vocabulary = stride;
  if (logits.type != DataType::kF32 || logits.shape.rank() == 0 || vocabulary == 0 ||
      vocabulary > stride) {
    refuse_search(where,
                  fmt::format("logits are {} {}", name_of(logits.type), logits.shape.to_string()),
                  fmt::format("pass f32 rows of at least {}", std::max<uint64_t>(vocabulary, 1)));
  }
  if (k == 0 || k > kMostCandidates || k > vocabulary) {
    refuse_search(where, fmt::format("{} of {} asked for", k, vocabulary),
                  fmt::format("ask for 1 to {}", std::min<uint64_t>(kMostCandidates, vocabulary)));
  }
  const uint64_t last_rules =
      rules.rules_rows > 0 ? (rows - 1) / rules.rules_rows * rules.rules_stride : 0;
  if (!fits(rules.banned, 1, control) || !fits(rules.position, 1, control) ||
      !serves_rows(rules.position, rows) || !fits(rules.by_position, 1, control) ||
      rules.by_position.end() + last_rules > control.shape.elements() ||
      (rules.ends && !fits(*rules.ends, 1, control)) ||
      (rules.forbidden && !fits(*rules.forbidden, rows * rules.forbidden_row, control))) {
    refuse_search(where,
                  fmt::format("the rules, at words {}, {} and {}, do not stand in control, {} {}",
                              rules.banned.word, rules.position.word, rules.by_position.word,
                              name_of(control.type), control.shape.to_string()),
                  "control must be u32 and hold the rules");
  }
  Tensor result = builder.activation({rows, k, 2}, DataType::kU32);
  ShapeFacts facts = stride % 4 == 0 ? kColumnsMultipleOf4 : kAnyShape;
  if (vocabulary >= 256) facts |= kColumnsAtLeast256;
  if (rules.banned_capacity() <= 64) facts |= kFewBanned;
  facts |= builder.rows_as(rows) <= 8 ? kRowsAtMost8 : kRowsAbove8;
  const Kernel& kernel = builder.select({Op::kTopK, {DataType::kF32, DataType::kF32}, facts});
  // Rows may begin between the alignments of descriptors: a slice is bound from the aligned byte
  // before its first row.
  uint64_t row_bytes = stride * 4, alignment = builder.capabilities().storage_alignment;
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
    params.row_stride = static_cast<uint32_t>(stride);
    params.k = k;
    params.first = static_cast<uint32_t>(before / 4);
    params.result_row = static_cast<uint32_t>(row);
    params.banned = rules.banned.word;
    params.banned_capacity = rules.banned_capacity();
    params.position = rules.position.word;
    params.position_stride = stride_of(rules.position);
    params.rules = rules.by_position.word;
    params.rules_rows = std::max(rules.rules_rows, 1u);
    params.rules_stride = rules.rules_rows > 0 ? rules.rules_stride : 0;
    params.ends = rules.ends ? rules.ends->word : 0;
    params.ends_room = rules.ends ? rules.ends->count - 1 : 0;
    params.forbidden = rules.forbidden ? rules.forbidden->word : 0;
    params.forbidden_row = rules.forbidden ? rules.forbidden_row : 0;
    params.forbidden_first = rules.forbidden_first;
    node.set_params(params);
    node.groups = {groups_for(builder, count), 1, 1};
    node.work.bytes = count * vocabulary * 4 + count * k * 8;
    node.work.flops = count * vocabulary * 3;
    builder.add(std::move(node));
  }
  return result;
}

namespace {

void check_control(const std::string& where, const Tensor& control, const BeamStateLayout& layout) {
  const uint64_t rows = uint64_t{layout.batch} * layout.beams;
  if (fits(layout.history_parents, rows * layout.context, control) &&
      fits(layout.forbidden, rows * layout.forbidden_row(), control))
    return;
  refuse_search(
      where,
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
    refuse_search(where,
                  fmt::format("state is {} {}", name_of(state.type), state.shape.to_string()),
                  fmt::format("it must have {} rows, or a multiple, of 32-bit elements", rows));
  }
  const uint64_t items = state.shape.rows() / layout.beams;
  const Capabilities& device = builder.capabilities();
  if (state.bytes() > device.max_storage_range) {
    refuse_search(where, fmt::format("{} bytes pass what one dispatch covers", state.bytes()),
                  "use a smaller batch");
  }
  Node node;
  node.kernel = &builder.select({Op::kFollowBeams, {DataType::kF32, DataType::kF32}, kAnyShape});
  node.buffers = {{control, Access::kRead}, {state, Access::kReadWrite}};
  const auto columns = static_cast<uint32_t>(state.shape.columns());
  node.set_params(shader::FollowBeamsParams{layout.batch, columns, layout.items.index(),
                                            layout.positions.word, layout.history_parents.word});
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
    refuse_search(
        where,
        fmt::format("candidates are {} {}", name_of(candidates.type), candidates.shape.to_string()),
        fmt::format("they must be u32 ({}, {}, 2)", rows, 2 * layout.beams));
  }
  check_control(where, control, layout);
  if (progress.type != DataType::kU32 || progress.shape.elements() < 1) {
    refuse_search(
        where, fmt::format("progress is {} {}", name_of(progress.type), progress.shape.to_string()),
        "it must hold a word, as u32");
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
  params.positions = layout.positions.word;
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
  // Counts the candidates once, and per row the scores, the token, its history, and on average half
  // of the ancestry.
  node.work.bytes = candidates.bytes() + rows * 5 * 4 + rows * layout.context * 4;
  node.work.flops = rows * candidates.shape[1] * 2;
  builder.add(std::move(node));
}

}  // namespace mulciber
