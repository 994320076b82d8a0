#include "ops/sampling.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "mulciber/error.h"
#include "ops/row_slices.h"
#include "runtime/op.h"
#include "shaders/sample.h"

namespace mulciber {
namespace {

constexpr uint64_t kMostVocabulary = uint64_t{SAMPLE_MOST_CHUNKS} * SAMPLE_MOST_CHUNK;

[[noreturn]] void refuse(const std::string& where, std::string problem, std::string remedy) {
  throw ShapeError(where, std::move(problem), std::move(remedy));
}

shader::SampleParams params_of(uint64_t vocabulary, const SampleStateLayout& layout) {
  shader::SampleParams params{};
  params.vocabulary = static_cast<uint32_t>(vocabulary);
  params.chunk = SAMPLE_LEAST_CHUNK;
  while (uint64_t{params.chunk} * SAMPLE_MOST_CHUNKS < vocabulary) params.chunk *= 2;
  params.chunks = (params.vocabulary + params.chunk - 1) / params.chunk;
  params.history_capacity = layout.history_capacity;
  params.banned_capacity = layout.banned_capacity;
  params.stop_capacity = layout.stop_capacity;
  params.positions = layout.positions;
  params.tokens = layout.tokens;
  params.fed = layout.fed;
  params.counts = layout.counts;
  params.stopped = layout.stopped;
  params.settings = layout.settings;
  params.history = layout.history;
  params.banned = layout.banned;
  params.stops = layout.stops;
  params.ring = layout.ring;
  params.rows = layout.rows;
  return params;
}

void check(const ProgramBuilder& builder, const Tensor& logits, const Tensor& control,
           const SampleStateLayout& layout) {
  const std::string where = builder.path() + ": sample";
  if (logits.type != DataType::kF32 || logits.shape.rank() != 2 || logits.shape[0] != layout.rows ||
      logits.shape[1] == 0 || logits.shape[1] > kMostVocabulary) {
    refuse(where, fmt::format("logits are {} {}", name_of(logits.type), logits.shape.to_string()),
           fmt::format("they must be f32 ({}, vocabulary), with a vocabulary up to {}", layout.rows,
                       kMostVocabulary));
  }
  if (control.type != DataType::kU32 ||
      uint64_t{layout.first_word} + layout.words > control.shape.elements()) {
    refuse(where,
           fmt::format("a state of {} words from word {} does not fit control {} {}", layout.words,
                       layout.first_word, name_of(control.type), control.shape.to_string()),
           "control must be u32 and hold the state");
  }
}

}  // namespace

uint32_t SampleStateLayout::progress_words() const { return (2 + ring) * rows; }

SampleStateLayout plan_sample_state(uint32_t first_word, uint32_t rows, uint32_t history_capacity,
                                    uint32_t banned_capacity, uint32_t stop_capacity,
                                    uint32_t ring) {
  SampleStateLayout layout;
  layout.first_word = first_word;
  layout.rows = rows;
  layout.history_capacity = history_capacity;
  layout.banned_capacity = banned_capacity;
  layout.stop_capacity = stop_capacity;
  layout.ring = ring;
  uint64_t next = first_word;
  const auto take = [&](uint64_t words) {
    const uint64_t at = next;
    next += words;
    return static_cast<uint32_t>(at);
  };
  layout.positions = take(rows);
  layout.tokens = take(rows);
  layout.fed = take(rows);
  layout.counts = take(rows);
  layout.stopped = take(rows);
  layout.settings = take(uint64_t{rows} * SAMPLE_SETTING_WORDS);
  layout.history = take(uint64_t{rows} * history_capacity);
  layout.banned = take(1 + uint64_t{banned_capacity});
  layout.stops = take(1 + uint64_t{stop_capacity});
  if (rows == 0 || history_capacity == 0 || ring == 0 ||
      next > std::numeric_limits<uint32_t>::max() / 4) {
    refuse("sampling", fmt::format("{} rows with a history of {} tokens", rows, history_capacity),
           "use 1 row and 1 token or more, and less than 4 GiB in all");
  }
  layout.words = static_cast<uint32_t>(next - first_word);
  return layout;
}

std::vector<uint32_t> sample_setting_words(const SampleRow& row) {
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
  const auto bits = [](float value) { return std::bit_cast<uint32_t>(value); };
  std::vector<uint32_t> words(SAMPLE_SETTING_WORDS, 0);
  words[SAMPLE_SEED] = static_cast<uint32_t>(sampling.seed);
  words[SAMPLE_SEED + 1] = static_cast<uint32_t>(sampling.seed >> 32);
  words[SAMPLE_STREAM] = row.stream;
  words[SAMPLE_TEMPERATURE] = bits(sampling.temperature);
  words[SAMPLE_TOP_K] = sampling.top_k;
  words[SAMPLE_TOP_P] = bits(sampling.top_p);
  words[SAMPLE_MIN_P] = bits(sampling.min_p);
  words[SAMPLE_TYPICAL_P] = bits(sampling.typical_p);
  words[SAMPLE_REPETITION] = bits(sampling.repetition_penalty);
  words[SAMPLE_PRESENCE] = bits(sampling.presence_penalty);
  words[SAMPLE_FREQUENCY] = bits(sampling.frequency_penalty);
  words[SAMPLE_WINDOW] = sampling.penalty_window;
  words[SAMPLE_LAST_POSITION] = row.last_position;
  words[SAMPLE_LAST_COUNT] = row.last_count;
  return words;
}

std::vector<uint32_t> initial_sample_state(const SampleStateLayout& layout,
                                           std::span<const SampleRow> rows,
                                           std::span<const uint32_t> banned,
                                           std::span<const uint32_t> stops) {
  if (rows.size() != layout.rows || banned.size() > layout.banned_capacity ||
      stops.size() > layout.stop_capacity) {
    refuse(
        "sampling",
        fmt::format("{} rows, {} banned ids and {} stop ids do not fit a state for {}, {} and {}",
                    rows.size(), banned.size(), stops.size(), layout.rows, layout.banned_capacity,
                    layout.stop_capacity),
        "plan a larger state");
  }
  std::vector<uint32_t> words(layout.words, 0);
  const auto at = [&](uint32_t word) { return words.begin() + (word - layout.first_word); };
  for (uint32_t row = 0; row < layout.rows; ++row) {
    const SampleRow& given = rows[row];
    *at(layout.positions + row) = given.position;
    *at(layout.tokens + row) = given.token;
    *at(layout.fed + row) = given.fed;
    *at(layout.counts + row) = static_cast<uint32_t>(given.history.size());
    *at(layout.stopped + row) = given.idle ? SAMPLE_IDLE : SAMPLE_RUNNING;
    std::ranges::copy(sample_setting_words(given),
                      at(layout.settings + row * SAMPLE_SETTING_WORDS));
    const size_t lost =
        given.history.size() - std::min<size_t>(given.history.size(), layout.history_capacity);
    for (size_t i = lost; i < given.history.size(); ++i) {
      *at(layout.history + row * layout.history_capacity +
          static_cast<uint32_t>(i % layout.history_capacity)) = given.history[i];
    }
  }
  *at(layout.banned) = static_cast<uint32_t>(banned.size());
  std::ranges::copy(banned, at(layout.banned + 1));
  *at(layout.stops) = static_cast<uint32_t>(stops.size());
  std::ranges::copy(stops, at(layout.stops + 1));
  return words;
}

Tensor sample_scan(ProgramBuilder& builder, const Tensor& logits, const Tensor& control,
                   const SampleStateLayout& layout) {
  check(builder, logits, control, layout);
  shader::SampleParams params = params_of(logits.shape[1], layout);
  const Tensor chunks = builder.activation({layout.rows, params.chunks, 2}, DataType::kF32);
  const auto& most = builder.capabilities().max_groups;
  // An invocation goes through few chunks: some drivers stop it after 65,535 iterations of all its
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
    refuse(builder.path() + ": sample",
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
  // The least a choice among all must read; filters read again what they cannot rule out by chunks.
  node.work.bytes = chunks.bytes() + layout.rows * (SAMPLE_LEAST_CHUNK + SAMPLE_SETTING_WORDS) * 4;
  node.work.flops = chunks.shape.elements() * 2;
  builder.add(std::move(node));
}

}  // namespace mulciber
