// Cases of sample_choose; conformance/op_cases.cpp declares them.
#include <fmt/format.h>

#include <algorithm>

#include "conformance/op_case.h"
#include "conformance/ops/sample_variant.h"
#include "mulciber/error.h"

namespace mulciber::conformance {
namespace {

OpCase sample_choose_case(const SampleVariant& v, KernelTypes types) {
  OpCase c;
  c.types = types;
  c.name = fmt::format("r{}_v{}.{}", v.rows.size(), v.vocabulary, v.name);
  c.degenerate = true;  // a choice is a single number
  c.must_pass = v.vocabulary < 10000;
  const std::vector<uint32_t> control = control_of(v);
  c.inputs = {words_input(control),
              words_input(std::vector<uint32_t>(layout_of(v).progress_words(), 99))};
  // Later steps choose the largest logit, so rounding decides nothing.
  for (uint32_t step = 0; step < v.steps; ++step) c.inputs.push_back(logits_input(v, v.steps > 1));
  c.build = [=](ProgramBuilder& builder, std::span<const Tensor> inputs) {
    for (uint32_t step = 0; step < v.steps; ++step)
      sample(builder, inputs[2 + step], inputs[0], layout_of(v), inputs[1]);
    return std::vector<Tensor>{inputs[0], inputs[1]};
  };
  c.reference = [=](std::span<const CpuTensor> inputs, const Arithmetic&) {
    const SampleStateLayout layout = layout_of(v);
    ControlWords control(std::vector<uint32_t>(inputs[0].values.begin(), inputs[0].values.end()));
    std::vector<uint32_t> progress(inputs[1].values.begin(), inputs[1].values.end());
    for (uint32_t r = 0; r < v.rows.size(); ++r) {
      SampledRow row(v.rows[r]);
      for (uint32_t step = 0; step < v.steps; ++step) {
        const uint32_t before = row.count;
        step_reference(v, v.rows[r],
                       std::span(inputs[2 + step].values).subspan(r * v.vocabulary, v.vocabulary),
                       row);
        if (row.count == before) continue;
        control.set(layout.history_of(r), before % v.history_capacity, row.token);
        progress[layout.progress_token(r, before)] = row.token;
      }
      control.set(layout.positions, r, row.position);
      control.set(layout.tokens, r, row.token);
      control.set(layout.fed, r, row.fed);
      control.set(layout.counts, r, row.count);
      control.set(layout.stopped, r, row.stopped);
      progress[layout.progress_count(r)] = row.count;
      progress[layout.progress_stopped(r)] = row.stopped;
    }
    return std::vector<CpuTensor>{u32_tensor(control.words()), u32_tensor(progress)};
  };
  return c;
}

class SampleChooseCases : public SampleCases {
 public:
  std::vector<OpCase> samples(KernelTypes types) const override {
    std::vector<OpCase> cases;
    const auto add = [&](const SampleVariant& v) { cases.push_back(sample_choose_case(v, types)); };
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
      SampleVariant mixed = {
          .vocabulary = vocabulary,
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
          .name = "mixed"};
      mixed.rows[0].mask = mask_of(vocabulary, 7);
      mixed.rows[2].mask = mask_of(vocabulary, 12);
      add(mixed);
    }
    // Vocabularies of models. Logits are widely spread, like those of models: few ids hold most of
    // the probability.
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
    // Flat logits: the first filter reads most chunks.
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
    // In the longer rows the chunk with NaN or infinity does not belong to the first lanes.
    for (uint64_t vocabulary : {300, 5003}) {
      add({.vocabulary = vocabulary,
           .rows = rows_with({{.temperature = 0},
                              {.temperature = 1, .top_k = 9},
                              {.temperature = 0},
                              {.temperature = 1, .top_p = 0.5f},
                              {.temperature = 1},
                              {.temperature = 1}},
                             vocabulary),
           .odd_values = true,
           .name = "odd_values"});
    }
    add({.vocabulary = 5003,
         .rows = rows_with(
             {{.temperature = 1}, {.temperature = 0}, {.temperature = 1, .top_p = 0.5f}}, 5003),
         .banned = {2501, 5002},  // the positions of infinity and NaN
         .odd_values = true,
         .name = "odd_values_banned"});
    std::vector<uint32_t> all(40);
    for (uint32_t id = 0; id < 40; ++id) all[id] = id;
    add({.vocabulary = 40,
         .rows = rows_with({{.temperature = 1}, {.temperature = 0}}, 40),
         .banned = all,
         .name = "all_banned"});
    // Several steps: stops, limits, an idle row, rings that wrap around. Greedy choices make every
    // step exact.
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

 private:
  Sampling usual() const override { return {.temperature = 0.8f, .top_k = 40, .top_p = 0.95f}; }
  OpCase case_of(const SampleVariant& v, KernelTypes types) const override {
    return sample_choose_case(v, types);
  }
};

}  // namespace

const OpCases& sample_choose_cases() {
  static const SampleChooseCases cases;
  return cases;
}

}  // namespace mulciber::conformance
