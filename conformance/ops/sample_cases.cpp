#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "conformance/bounds.h"
#include "conformance/op_case.h"
#include "conformance/ops/sample_reference.h"
#include "mulciber/error.h"
#include "ops/sampling.h"
#include "shaders/sample.h"

namespace mulciber::conformance {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr uint32_t kFirstWord = 5;
constexpr double kLeastMargin = 2e-5;  // f32 sums of a few hundred thousand terms, with room

struct Variant {
  uint64_t vocabulary = 100;
  std::vector<SampleRow> rows = {{}};
  std::vector<uint32_t> banned = {}, stops = {};
  uint32_t history_capacity = 32, ring = 1;
  uint32_t steps = 1;
  double deviation = 3;     // of the logits
  double levels = 0;        // > 0: logits are multiples of 1 / levels, so that many are equal
  bool odd_values = false;  // -infinity in all rows; NaN in every third, infinity in the one before
  std::string name = {};
};

SampleStateLayout layout_of(const Variant& v) {
  return plan_sample_state(kFirstWord, static_cast<uint32_t>(v.rows.size()), v.history_capacity,
                           static_cast<uint32_t>(v.banned.size()) + 2,
                           static_cast<uint32_t>(v.stops.size()) + 1, v.ring);
}

/// A row as the steps before left it.
struct RowState {
  std::vector<uint32_t> history;
  uint32_t position, fed, token, count, stopped;

  explicit RowState(const SampleRow& row)
      : history(row.history),
        position(row.position),
        fed(row.fed),
        token(row.token),
        count(static_cast<uint32_t>(row.history.size())),
        stopped(row.idle ? SAMPLE_IDLE : SAMPLE_RUNNING) {}
};

/// One step of a row; returns the margin of its choice.
double step_reference(const Variant& v, const SampleRow& given, std::span<const double> logits,
                      RowState& row) {
  if (row.stopped != SAMPLE_RUNNING) return kInfinity;
  if (!are_logits(logits)) {
    row.stopped = SAMPLE_NOT_FINITE;
    return kInfinity;
  }
  const size_t held = std::min<size_t>(row.history.size(), v.history_capacity);
  const std::span<const uint32_t> window = std::span(row.history).last(held);
  const Choice choice = choose(penalized(logits, given.sampling, window, v.banned), given.sampling,
                               random_number(given.sampling.seed, row.count, given.stream));
  row.history.push_back(choice.id);
  row.position += row.fed;
  row.fed = 1;
  row.token = choice.id;
  ++row.count;
  if (row.position >= given.last_position || row.count >= given.last_count)
    row.stopped = SAMPLE_LIMIT;
  if (std::ranges::count(v.stops, choice.id) > 0) row.stopped = SAMPLE_STOP_ID;
  return choice.margin;
}

void draw_logits(const Variant& v, uint64_t row, std::span<double> logits, std::mt19937& random) {
  std::normal_distribution<double> normal(0, v.deviation);
  for (double& value : logits) {
    value = normal(random);
    if (v.levels > 0) value = std::round(value * v.levels) / v.levels;
    value = static_cast<float>(value);
  }
  if (!v.odd_values) return;
  for (size_t i = 1; i < logits.size(); i += 7) logits[i] = -kInfinity;
  // One is enough, wherever it stands.
  if (row % 3 == 1) logits[logits.size() / 2] = kInfinity;
  if (row % 3 == 2) logits[logits.size() - 1] = std::nan("");
}

/// Logits of one step. Rows whose choice would be a matter of rounding are drawn again.
CaseInput logits_input(const Variant& v, bool any_margin) {
  const uint64_t rows = v.rows.size();
  return {
      {rows, v.vocabulary}, DataType::kF32, [=](std::vector<double>& values, std::mt19937& random) {
        for (uint64_t row = 0; row < rows; ++row) {
          const std::span<double> logits(values.data() + row * v.vocabulary, v.vocabulary);
          for (int attempt = 0; attempt < 200; ++attempt) {
            draw_logits(v, row, logits, random);
            RowState state(v.rows[row]);
            if (any_margin || step_reference(v, v.rows[row], logits, state) >= kLeastMargin) break;
          }
        }
      }};
}

std::vector<uint32_t> control_of(const Variant& v) {
  std::vector<uint32_t> words(kFirstWord, 0xffffffff);
  const std::vector<uint32_t> state = initial_sample_state(layout_of(v), v.rows, v.banned, v.stops);
  words.insert(words.end(), state.begin(), state.end());
  return words;
}

OpCase choose_case(const Variant& v, KernelTypes types) {
  OpCase c;
  c.types = types;
  c.name = fmt::format("r{}_v{}.{}", v.rows.size(), v.vocabulary, v.name);
  c.degenerate = true;  // a choice is a single number
  c.must_pass = v.vocabulary < 10000;
  const std::vector<uint32_t> control = control_of(v);
  c.inputs = {words_input(control),
              words_input(std::vector<uint32_t>(layout_of(v).progress_words(), 99))};
  // Later steps choose the largest logit: nothing is left to rounding.
  for (uint32_t step = 0; step < v.steps; ++step) c.inputs.push_back(logits_input(v, v.steps > 1));
  c.build = [=](ProgramBuilder& builder, std::span<const Tensor> inputs) {
    for (uint32_t step = 0; step < v.steps; ++step)
      sample(builder, inputs[2 + step], inputs[0], layout_of(v), inputs[1]);
    return std::vector<Tensor>{inputs[0], inputs[1]};
  };
  c.reference = [=](std::span<const HostTensor> inputs, const Arithmetic&) {
    const SampleStateLayout layout = layout_of(v);
    std::vector<uint32_t> words(inputs[0].values.begin(), inputs[0].values.end());
    std::vector<uint32_t> progress(inputs[1].values.begin(), inputs[1].values.end());
    for (uint32_t r = 0; r < v.rows.size(); ++r) {
      RowState row(v.rows[r]);
      for (uint32_t step = 0; step < v.steps; ++step) {
        const uint32_t before = row.count;
        step_reference(v, v.rows[r],
                       std::span(inputs[2 + step].values).subspan(r * v.vocabulary, v.vocabulary),
                       row);
        if (row.count == before) continue;
        words[layout.history + r * v.history_capacity + before % v.history_capacity] = row.token;
        progress[layout.progress_token(r, before)] = row.token;
      }
      words[layout.positions + r] = row.position;
      words[layout.tokens + r] = row.token;
      words[layout.fed + r] = row.fed;
      words[layout.counts + r] = row.count;
      words[layout.stopped + r] = row.stopped;
      progress[layout.progress_count(r)] = row.count;
      progress[layout.progress_stopped(r)] = row.stopped;
    }
    return std::vector<HostTensor>{u32_tensor(words), u32_tensor(progress)};
  };
  return c;
}

/// Rows of one batch, each with other settings, seed and history.
std::vector<SampleRow> rows_with(std::vector<Sampling> samplings, uint64_t vocabulary) {
  std::vector<SampleRow> rows;
  for (Sampling& s : samplings) {
    const auto r = static_cast<uint32_t>(rows.size());
    s.seed = 0x1234567800000000ull + 77 * r + vocabulary;
    SampleRow row{.sampling = s, .stream = r, .position = 3 + r, .fed = r % 3 + 1};
    for (uint32_t t = 0; t < 5 + 9 * r; ++t)
      row.history.push_back(static_cast<uint32_t>((t * t + r) % vocabulary));
    rows.push_back(row);
  }
  return rows;
}

class SampleChooseCases : public OpCases {
 public:
  std::string shape_format() const override { return "rows,vocabulary"; }
  std::vector<std::vector<uint64_t>> bench_shapes() const override {
    return {{1, 32000}, {1, 262144}, {8, 128256}};
  }

  OpCase make(std::span<const uint64_t> shape, KernelTypes types) const override {
    if (shape.size() != 2 || shape[0] == 0 || shape[1] == 0) {
      throw ShapeError("sample", "a shape is two positive numbers",
                       "give rows,vocabulary such as 1,32000");
    }
    const Sampling usual{.temperature = 0.8f, .top_k = 40, .top_p = 0.95f};
    return choose_case({.vocabulary = shape[1],
                        .rows = rows_with(std::vector(shape[0], usual), shape[1]),
                        .name = "usual"},
                       types);
  }

  std::vector<OpCase> samples(KernelTypes types) const override {
    std::vector<OpCase> cases;
    const auto add = [&](Variant v) { cases.push_back(choose_case(v, types)); };
    for (uint64_t vocabulary : {1, 2, 7, 31, 255, 256, 257, 1000, 5003}) {
      add({.vocabulary = vocabulary,
           .rows = rows_with({{.temperature = 0}, {.temperature = 0}}, vocabulary),
           .name = "greedy"});
      add({.vocabulary = vocabulary,
           .rows = rows_with({{.temperature = 1}, {.temperature = 0.5f}, {.temperature = 2}},
                             vocabulary),
           .name = "all"});
      add({.vocabulary = vocabulary,
           .rows = rows_with({{.temperature = 1, .top_k = 1},
                              {.temperature = 1, .top_k = 3},
                              {.temperature = 1, .top_k = 40}},
                             vocabulary),
           .name = "top_k"});
      add({.vocabulary = vocabulary,
           .rows = rows_with({{.temperature = 1, .top_p = 0.1f},
                              {.temperature = 1, .top_p = 0.6f},
                              {.temperature = 1, .top_p = 0.95f}},
                             vocabulary),
           .name = "top_p"});
      add({.vocabulary = vocabulary,
           .rows = rows_with({{.temperature = 1, .min_p = 0.01f},
                              {.temperature = 1, .min_p = 0.2f},
                              {.temperature = 1, .min_p = 0.9f}},
                             vocabulary),
           .name = "min_p"});
      add({.vocabulary = vocabulary,
           .rows = rows_with(
               {{.temperature = 1, .typical_p = 0.2f}, {.temperature = 1, .typical_p = 0.9f}},
               vocabulary),
           .name = "typical"});
      add({.vocabulary = vocabulary,
           .rows = rows_with(
               {{.temperature = 0.7f,
                 .top_k = 20,
                 .top_p = 0.9f,
                 .min_p = 0.02f,
                 .typical_p = 0.95f},
                {.temperature = 1.3f, .top_k = 50, .top_p = 0.8f, .repetition_penalty = 1.2f},
                {.temperature = 1,
                 .top_p = 0.9f,
                 .presence_penalty = 1,
                 .frequency_penalty = 0.5f,
                 .penalty_window = 6}},
               vocabulary),
           .banned = {0, 5},
           .name = "mixed"});
    }
    // Vocabularies of models. Logits spread far, as those of models do: few ids hold most of the
    // probability.
    for (uint64_t vocabulary : {32000, 151936, 262144, 262208}) {
      add({.vocabulary = vocabulary,
           .rows = rows_with({{.temperature = 0},
                              {.temperature = 0.8f, .top_k = 40, .top_p = 0.95f},
                              {.temperature = 1, .top_p = 0.9f},
                              {.temperature = 1}},
                             vocabulary),
           .deviation = 30,
           .name = "spread"});
    }
    // Flat: the first filter goes through most chunks.
    add({.vocabulary = 262144,
         .rows = rows_with({{.temperature = 1, .top_k = 1000, .top_p = 0.5f, .typical_p = 0.5f}},
                           262144),
         .deviation = 0.1,
         .name = "flat"});
    add({.vocabulary = 300,
         .rows = rows_with({{.temperature = 0},
                            {.temperature = 1, .top_k = 9},
                            {.temperature = 1, .top_p = 0.5f}},
                           300),
         .levels = 1,
         .name = "ties"});
    add({.vocabulary = 300,
         .rows = rows_with({{.temperature = 0},
                            {.temperature = 1, .top_k = 9},
                            {.temperature = 0},
                            {.temperature = 1, .top_p = 0.5f},
                            {.temperature = 1},
                            {.temperature = 1}},
                           300),
         .odd_values = true,
         .name = "odd_values"});
    add({.vocabulary = 5003,
         .rows = rows_with(
             {{.temperature = 1}, {.temperature = 0}, {.temperature = 1, .top_p = 0.5f}}, 5003),
         .banned = {2501, 5002},  // where infinity and NaN stand
         .odd_values = true,
         .name = "odd_values_banned"});
    std::vector<uint32_t> all(40);
    for (uint32_t id = 0; id < 40; ++id) all[id] = id;
    add({.vocabulary = 40,
         .rows = rows_with({{.temperature = 1}, {.temperature = 0}}, 40),
         .banned = all,
         .name = "all_banned"});
    // Several steps: stops, limits, an idle row, rings that wrap around. Greedy, so that every step
    // is exact.
    Sampling greedy{.temperature = 0, .repetition_penalty = 2, .penalty_window = 100};
    std::vector<SampleRow> rows = rows_with(std::vector(6, greedy), 12);
    rows[1].last_position = rows[1].position + rows[1].fed + 2;
    rows[2].last_position = rows[2].position + rows[2].fed;
    rows[3].last_count = static_cast<uint32_t>(rows[3].history.size()) + 3;
    rows[4].idle = true;
    add({.vocabulary = 12,
         .rows = rows,
         .stops = {4, 7},
         .history_capacity = 9,
         .ring = 8,
         .steps = 6,
         .name = "steps"});
    add({.vocabulary = 12,
         .rows = rows,
         .history_capacity = 3,
         .ring = 3,
         .steps = 4,
         .name = "ring"});
    return cases;
  }
};

OpCase scan_case(const Variant& v, KernelTypes types) {
  OpCase c;
  c.types = types;
  c.name = fmt::format("r{}_v{}.{}", v.rows.size(), v.vocabulary, v.name);
  c.degenerate = true;
  c.must_pass = v.vocabulary < 10000;
  c.inputs = {words_input(control_of(v)), logits_input(v, true)};
  c.build = [=](ProgramBuilder& builder, std::span<const Tensor> inputs) {
    return std::vector<Tensor>{sample_scan(builder, inputs[1], inputs[0], layout_of(v)), inputs[1]};
  };
  c.reference = [=](std::span<const HostTensor> inputs, const Arithmetic&) {
    const uint64_t chunk = v.vocabulary > SAMPLE_MOST_CHUNKS * SAMPLE_LEAST_CHUNK
                               ? SAMPLE_MOST_CHUNK
                               : SAMPLE_LEAST_CHUNK;
    HostTensor logits = inputs[1], chunks{{}, DataType::kF32, {}, {}};
    logits.bounds.assign(logits.values.size(), 0);
    for (uint64_t r = 0; r < v.rows.size(); ++r) {
      const SampleRow& row = v.rows[r];
      double* own = &logits.values[r * v.vocabulary];
      const size_t held = std::min<size_t>(row.history.size(), v.history_capacity);
      const std::vector<double> after = penalized(std::span(own, v.vocabulary), row.sampling,
                                                  std::span(row.history).last(held), v.banned);
      std::vector<bool> lost;  // chunks
      for (uint64_t begin = 0; begin < v.vocabulary; begin += chunk)
        lost.push_back(!are_logits({own + begin, std::min(chunk, v.vocabulary - begin)}));
      for (uint64_t id = 0; id < v.vocabulary; ++id) {
        if (!are_logits({own + id, 1})) {  // what a penalty makes of it does not matter
          own[id] = 0;
          logits.bounds[r * v.vocabulary + id] = kInfinity;
          continue;
        }
        if (after[id] == own[id]) continue;
        // A product or quotient, n times a penalty, and two sums.
        own[id] = after[id];
        if (std::isfinite(after[id]))
          logits.bounds[r * v.vocabulary + id] = 6 * ulp32(std::fabs(after[id]) + 8);
      }
      const double degree = row.sampling.temperature > 0 ? row.sampling.temperature : 1;
      for (uint64_t begin = 0; begin < v.vocabulary; begin += chunk) {
        const uint64_t end = std::min(begin + chunk, v.vocabulary);
        if (lost[begin / chunk]) {
          append(chunks, Bounded(0));
          append(chunks, Bounded(-1));
          continue;
        }
        Bounded largest(-kInfinity);
        for (uint64_t id = begin; id < end; ++id) {
          largest = max(largest, Bounded(after[id], logits.bounds[r * v.vocabulary + id]));
        }
        double sum = 0, error = 0;
        for (uint64_t id = begin; id < end && largest.value > -kInfinity; ++id) {
          const Bounded term =
              exp((Bounded(after[id], logits.bounds[r * v.vocabulary + id]) - largest) *
                  (Bounded(1) / Bounded(degree)));
          sum += term.value;
          error += term.error;
        }
        append(chunks, largest);
        append(chunks, Bounded(sum, error + sum_error(static_cast<double>(chunk), sum)));
      }
    }
    chunks.shape = {v.rows.size(), chunks.values.size() / v.rows.size() / 2, 2};
    return std::vector<HostTensor>{chunks, logits};
  };
  return c;
}

class SampleScanCases : public OpCases {
 public:
  std::string shape_format() const override { return "rows,vocabulary"; }
  std::vector<std::vector<uint64_t>> bench_shapes() const override {
    return {{1, 32000}, {1, 262144}, {8, 128256}};
  }

  OpCase make(std::span<const uint64_t> shape, KernelTypes types) const override {
    if (shape.size() != 2 || shape[0] == 0 || shape[1] == 0) {
      throw ShapeError("sample", "a shape is two positive numbers",
                       "give rows,vocabulary such as 1,32000");
    }
    const Sampling usual{.temperature = 0.8f, .repetition_penalty = 1.1f};
    return scan_case({.vocabulary = shape[1],
                      .rows = rows_with(std::vector(shape[0], usual), shape[1]),
                      .name = "usual"},
                     types);
  }

  std::vector<OpCase> samples(KernelTypes types) const override {
    std::vector<OpCase> cases;
    for (uint64_t vocabulary : {1, 2, 7, 31, 255, 256, 257, 1000, 5003, 32000, 262208}) {
      for (bool rules : {false, true}) {
        Variant v{.vocabulary = vocabulary, .name = rules ? "rules" : "plain"};
        Sampling s{.temperature = 0.7f};
        v.rows = rows_with({s, {.temperature = 0}, {.temperature = 1}}, vocabulary);
        if (rules) {
          v.rows = rows_with(
              {{.temperature = 1, .repetition_penalty = 1.3f},
               {.temperature = 0.5f, .presence_penalty = 0.75f, .frequency_penalty = 0.25f},
               {.temperature = 1,
                .repetition_penalty = 0.8f,
                .frequency_penalty = -0.5f,
                .penalty_window = 7}},
              vocabulary);
          v.banned = {1, 4, 200, 255, 256, 4000000};
          v.history_capacity = 20;
        }
        cases.push_back(scan_case(v, types));
        v.odd_values = true;
        v.name += "_odd_values";
        cases.push_back(scan_case(v, types));
      }
    }
    return cases;
  }
};

}  // namespace

const OpCases& sample_scan_cases() {
  static const SampleScanCases cases;
  return cases;
}

const OpCases& sample_choose_cases() {
  static const SampleChooseCases cases;
  return cases;
}

}  // namespace mulciber::conformance
