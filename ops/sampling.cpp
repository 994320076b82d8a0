#include "ops/sampling.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "mulciber/error.h"
#include "ops/row_slices.h"
#include "runtime/op.h"

namespace mulciber {
namespace {

constexpr uint64_t kMostVocabulary = uint64_t{SAMPLE_MOST_CHUNKS} * SAMPLE_MOST_CHUNK;

[[noreturn]] void refuse_sampling(const std::string& where, std::string problem,
                                  std::string remedy) {
  throw ShapeError(where, std::move(problem), std::move(remedy));
}

shader::SampleParams params_of(uint64_t vocabulary, const SampleStateLayout& layout) {
  shader::SampleParams params{};
  params.vocabulary = static_cast<uint32_t>(vocabulary);
  params.chunk = SAMPLE_LEAST_CHUNK;
  while (uint64_t{params.chunk} * SAMPLE_MOST_CHUNKS < vocabulary) params.chunk *= 2;
  params.chunks = (params.vocabulary + params.chunk - 1) / params.chunk;
  params.history_capacity = layout.history_capacity;
  params.banned_capacity = layout.banned.count - 1;
  params.stop_capacity = layout.stops.count - 1;
  params.bias_capacity = layout.bias_capacity;
  params.mask_words = layout.mask_words;
  params.positions = layout.positions.word;
  params.tokens = layout.tokens.word;
  params.fed = layout.fed.word;
  params.counts = layout.counts.word;
  params.stopped = layout.stopped.word;
  params.settings = layout.settings.index();
  params.history = layout.history.word;
  params.biases = layout.biases.word;
  params.masks = layout.masks.word;
  params.banned = layout.banned.word;
  params.stops = layout.stops.word;
  params.ring = layout.ring;
  params.rows = layout.rows;
  return params;
}

void check(const ProgramBuilder& builder, const Tensor& logits, const Tensor& control,
           const SampleStateLayout& layout) {
  const std::string where = builder.path() + ": sample";
  if (logits.type != DataType::kF32 || logits.shape.rank() != 2 || logits.shape[0] != layout.rows ||
      logits.shape[1] == 0 || logits.shape[1] > kMostVocabulary) {
    refuse_sampling(where,
                    fmt::format("logits are {} {}", name_of(logits.type), logits.shape.to_string()),
                    fmt::format("they must be f32 ({}, vocabulary), with a vocabulary up to {}",
                                layout.rows, kMostVocabulary));
  }
  // This is the last array that plan_sample_state() adds.
  if (!fits(layout.stops, 1, control)) {
    refuse_sampling(
        where,
        fmt::format("a state up to word {} does not fit control {} {}", layout.stops.end(),
                    name_of(control.type), control.shape.to_string()),
        "control must be u32 and hold the state");
  }
}

}  // namespace

uint32_t SampleStateLayout::progress_words() const { return (2 + ring) * rows; }

SampleStateLayout plan_sample_state(ControlLayout& control, uint32_t rows,
                                    uint32_t history_capacity, uint32_t banned_capacity,
                                    uint32_t stop_capacity, uint32_t ring, uint32_t bias_capacity,
                                    uint32_t mask_ids) {
  if (rows == 0 || history_capacity == 0 || ring == 0) {
    refuse_sampling("sampling",
                    fmt::format("{} rows with a history of {} tokens", rows, history_capacity),
                    "use 1 row and 1 token or more");
  }
  SampleStateLayout layout;
  layout.rows = rows;
  layout.history_capacity = history_capacity;
  layout.ring = ring;
  layout.positions = control.add<uint32_t>(rows);
  layout.tokens = control.add<uint32_t>(rows);
  layout.fed = control.add<uint32_t>(rows);
  layout.counts = control.add<uint32_t>(rows);
  layout.stopped = control.add<uint32_t>(rows);
  layout.settings = control.add<shader::SampleSettings>(rows);
  layout.history = control.add<uint32_t>(uint64_t{rows} * history_capacity);
  layout.bias_capacity = bias_capacity;
  if (bias_capacity > 0)
    layout.biases = control.add<uint32_t>(rows * (1 + 2 * uint64_t{bias_capacity}));
  layout.mask_words = (mask_ids + 31) / 32;
  if (mask_ids > 0) layout.masks = control.add<uint32_t>(rows * (1 + uint64_t{layout.mask_words}));
  layout.banned = control.add_list(banned_capacity);
  layout.stops = control.add_list(stop_capacity);
  return layout;
}

void set_biases(ControlWords& control, const SampleStateLayout& layout, uint32_t row,
                const LogitBiases& biases) {
  if (biases.empty() && layout.bias_capacity == 0) return;
  if (biases.size() > layout.bias_capacity)
    throw SettingError(
        "logit biases",
        fmt::format("are {}, there is room for {}", biases.size(), layout.bias_capacity),
        "leave out the smallest");
  const uint32_t words = 1 + 2 * layout.bias_capacity;
  const ControlArray<uint32_t> own = layout.biases.part(uint64_t{row} * words, words);
  control.set(own, 0, static_cast<uint32_t>(biases.size()));
  for (uint32_t i = 0; i < biases.size(); ++i) {
    control.set(own, 1 + i, biases[i].first);
    control.set(own, 1 + layout.bias_capacity + i, std::bit_cast<uint32_t>(biases[i].second));
  }
}

bool set_mask(ControlWords& control, const SampleStateLayout& layout, uint32_t row,
              std::span<const uint32_t> mask) {
  if (mask.empty() && layout.mask_words == 0) return false;
  if (!mask.empty() && mask.size() != layout.mask_words)
    refuse_sampling(
        "sampling",
        fmt::format("a mask of {} words, the state's have {}", mask.size(), layout.mask_words),
        "give a bit for each id");
  const ControlArray<uint32_t> own = layout.mask_of(row), bits = own.part(1, mask.size());
  const uint32_t given = mask.empty() ? 0 : 1;
  if (control.get(own, 0) == given && std::ranges::equal(control.values(bits), mask)) return false;
  control.set(own, 0, given);
  control.set(bits, mask);
  return true;
}

shader::SampleSettings sample_settings(const SampleRow& row) {
  const Sampling& sampling = row.sampling;
  const float floats[] = {sampling.temperature,
                          sampling.top_p,
                          sampling.min_p,
                          sampling.typical_p,
                          sampling.repetition_penalty,
                          sampling.presence_penalty,
                          sampling.frequency_penalty};
  const bool finite = std::ranges::all_of(floats, [](float value) { return std::isfinite(value); });
  if (!finite || sampling.temperature < 0 || !(sampling.top_p > 0) || sampling.min_p < 0 ||
      sampling.min_p > 1 || !(sampling.typical_p > 0) || !(sampling.repetition_penalty > 0)) {
    throw SettingError(
        "sampling",
        fmt::format("temperature {}, top p {}, min p {}, typical p {}, penalties {}, {} and {}",
                    sampling.temperature, sampling.top_p, sampling.min_p, sampling.typical_p,
                    sampling.repetition_penalty, sampling.presence_penalty,
                    sampling.frequency_penalty),
        "the temperature must be 0 or more, min p within 0 and 1, top p, typical p and the "
        "repetition penalty above 0");
  }
  return {.seed_low = static_cast<uint32_t>(sampling.seed),
          .seed_high = static_cast<uint32_t>(sampling.seed >> 32),
          .stream = row.stream,
          .temperature = sampling.temperature,
          .top_k = sampling.top_k,
          .top_p = sampling.top_p,
          .min_p = sampling.min_p,
          .typical_p = sampling.typical_p,
          .repetition_penalty = sampling.repetition_penalty,
          .presence_penalty = sampling.presence_penalty,
          .frequency_penalty = sampling.frequency_penalty,
          .penalty_window = sampling.penalty_window,
          .last_position = row.last_position,
          .last_count = row.last_count};
}

void initialize_sample_state(ControlWords& control, const SampleStateLayout& layout,
                             std::span<const SampleRow> rows, std::span<const uint32_t> banned,
                             std::span<const uint32_t> stops) {
  if (rows.size() != layout.rows || banned.size() >= layout.banned.count ||
      stops.size() >= layout.stops.count) {
    refuse_sampling(
        "sampling",
        fmt::format("{} rows, {} banned ids and {} stop ids do not fit a state for {}, {} and {}",
                    rows.size(), banned.size(), stops.size(), layout.rows, layout.banned.count - 1,
                    layout.stops.count - 1),
        "plan a larger state");
  }
  control.fill(layout.history, 0);
  for (uint32_t row = 0; row < layout.rows; ++row) {
    const SampleRow& given = rows[row];
    control.set(layout.positions, row, given.position);
    control.set(layout.tokens, row, given.token);
    control.set(layout.fed, row, given.fed);
    control.set(layout.counts, row, static_cast<uint32_t>(given.history.size()));
    control.set(layout.stopped, row, given.idle ? SAMPLE_IDLE : SAMPLE_RUNNING);
    control.set(layout.settings, row, sample_settings(given));
    set_biases(control, layout, row, given.biases);
    set_mask(control, layout, row, given.mask);
    const size_t lost =
        given.history.size() - std::min<size_t>(given.history.size(), layout.history_capacity);
    for (size_t i = lost; i < given.history.size(); ++i)
      control.set(layout.history_of(row), static_cast<uint32_t>(i % layout.history_capacity),
                  given.history[i]);
  }
  control.fill(layout.banned, 0);
  control.set_list(layout.banned, banned);
  control.fill(layout.stops, 0);
  control.set_list(layout.stops, stops);
}

Tensor sample_scan(ProgramBuilder& builder, const Tensor& logits, const Tensor& control,
                   const SampleStateLayout& layout) {
  check(builder, logits, control, layout);
  shader::SampleParams params = params_of(logits.shape[1], layout);
  const Tensor chunks = builder.activation({layout.rows, params.chunks, 2}, DataType::kF32);
  const auto& most = builder.capabilities().max_groups;
  // An invocation loops over few chunks: some drivers stop it after 65,535 iterations of all its
  // loops.
  const uint32_t per_node =
      static_cast<uint32_t>(std::min<uint64_t>(params.chunks, 16ull * most[0]));
  for (uint32_t first = 0; first < params.chunks; first += per_node) {
    params.first_chunk = first;
    params.end_chunk = std::min(first + per_node, params.chunks);
    Node node;
    node.kernel = &builder.select({Op::kSampleScan, {DataType::kF32, DataType::kF32}, kAnyShape});
    node.buffers = {
        {logits, Access::kReadWrite}, {control, Access::kRead}, {chunks, Access::kWrite}};
    node.set_params(params);
    node.groups = {std::min(params.end_chunk - first, most[0]), std::min(layout.rows, most[1]), 1};
    node.work.bytes =
        (logits.bytes() + chunks.bytes()) * (params.end_chunk - first) / params.chunks;
    node.work.flops = logits.shape.elements() * 3 * (params.end_chunk - first) / params.chunks;
    builder.add(std::move(node));
  }
  return chunks;
}

void sample(ProgramBuilder& builder, const Tensor& logits, const Tensor& control,
            const SampleStateLayout& layout, const Tensor& progress) {
  const Tensor chunks = sample_scan(builder, logits, control, layout);
  if (progress.type != DataType::kU32 || progress.shape.elements() < layout.progress_words()) {
    refuse_sampling(
        builder.path() + ": sample",
        fmt::format("progress is {} {}", name_of(progress.type), progress.shape.to_string()),
        fmt::format("it must be u32 and hold {} words", layout.progress_words()));
  }
  Node node;
  node.kernel = &builder.select({Op::kSampleChoose, {DataType::kF32, DataType::kF32}, kAnyShape});
  node.buffers = {{logits, Access::kRead},
                  {control, Access::kReadWrite},
                  {chunks, Access::kRead},
                  {progress, Access::kWrite}};
  node.set_params(params_of(logits.shape[1], layout));
  node.groups = {groups_for(builder, layout.rows), 1, 1};
  // This is the least that a choice among all must read; filters read chunks again that they cannot
  // rule out.
  node.work.bytes =
      chunks.bytes() + layout.rows * (SAMPLE_LEAST_CHUNK * 4 + sizeof(shader::SampleSettings));
  node.work.flops = chunks.shape.elements() * 2;
  builder.add(std::move(node));
}

}  // namespace mulciber
