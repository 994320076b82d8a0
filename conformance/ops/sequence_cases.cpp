// Cases of the op that moves sequences on: whole numbers, met exactly.
#include <fmt/format.h>

#include <algorithm>

#include "conformance/op_case.h"
#include "mulciber/error.h"
#include "runtime/op.h"
#include "runtime/ops/sequence.h"
#include "shaders/sequence.h"

namespace mulciber::conformance {
namespace {

constexpr uint32_t kFirstWord = 3, kRing = 5, kCapacity = 30;

struct Variant {
  uint32_t steps = 1;
  uint32_t candidates = 1;
  std::vector<uint32_t> stops;
  bool idle_rows = false;
};

class AdvanceCases : public OpCases {
 public:
  Op op() const override { return Op::kAdvance; }
  std::string shape_format() const override { return "rows"; }
  std::vector<std::vector<uint64_t>> bench_shapes() const override { return {{1}, {64}}; }

  OpCase make(std::span<const uint64_t> shape, KernelTypes types) const override {
    if (shape.size() != 1 || shape[0] == 0 || shape[0] > 65536)
      throw ShapeError("advance", "a shape is one positive number, at most 65536", "give rows such as 64");
    return variant(static_cast<uint32_t>(shape[0]), types, {});
  }

  std::vector<OpCase> samples(KernelTypes types) const override {
    std::vector<OpCase> cases;
    for (uint32_t rows : {1, 2, 3, 127, 128, 129, 300}) {
      cases.push_back(variant(rows, types, {}));
      cases.push_back(variant(rows, types, {.steps = 9, .stops = {4, 7}}));
      cases.push_back(variant(rows, types, {.steps = 3, .candidates = 4, .stops = {1}, .idle_rows = true}));
    }
    return cases;
  }

 private:
  static OpCase variant(uint32_t rows, KernelTypes types, Variant options) {
    const SequenceStateLayout layout = plan_sequence_state(kFirstWord, rows, kCapacity, 3, kRing);
    OpCase c;
    c.types = types;
    c.name = fmt::format("r{}_steps{}_k{}", rows, options.steps, options.candidates);
    if (!options.stops.empty()) c.name += fmt::format(".stops_{}", options.stops.size());
    if (options.idle_rows) c.name += ".idle";
    c.exact = c.degenerate = true;
    c.must_pass = rows == 3 || rows == 129;

    CaseInput control{{layout.end}, DataType::kU32, nullptr};
    control.fill = [=](std::vector<double>& words, std::mt19937& random) {
      std::fill(words.begin(), words.end(), 77);
      for (uint32_t row = 0; row < rows; ++row) {
        words[layout.positions + row] = random() % (kCapacity - 2);
        words[layout.fed + row] = 1 + random() % 3;
        words[layout.states + row] = options.idle_rows && row % 3 == 1 ? SEQUENCE_IDLE : SEQUENCE_RUNNING;
        words[layout.counts + row] = random() % 4;
        words[layout.limits + row] = 2 + random() % 12;
      }
      words[layout.steps] = 6;
      words[layout.stops] = static_cast<double>(options.stops.size());
      for (size_t i = 0; i < options.stops.size(); ++i) words[layout.stops + 1 + i] = options.stops[i];
    };
    CaseInput progress{{layout.progress_words()}, DataType::kU32, nullptr};
    progress.fill = [](std::vector<double>& words, std::mt19937&) { std::fill(words.begin(), words.end(), 99); };
    c.inputs = {control, progress};
    for (uint32_t step = 0; step < options.steps; ++step) {
      CaseInput candidates{{rows, options.candidates, 2}, DataType::kU32, nullptr};
      candidates.fill = [](std::vector<double>& words, std::mt19937& random) {
        for (double& word : words) word = random() % 23;
      };
      c.inputs.push_back(candidates);
    }
    c.build = [=](ProgramBuilder& builder, std::span<const Tensor> inputs) {
      for (const Tensor& candidates : inputs.subspan(2))
        advance_sequences(builder, candidates, inputs[0], layout, inputs[1]);
      return std::vector<Tensor>{inputs[0], inputs[1]};
    };
    c.reference = [=](std::span<const HostTensor> inputs, const Arithmetic&) {
      HostTensor state = inputs[0], shown = inputs[1];
      for (const HostTensor& candidates : inputs.subspan(2)) step(state.values, shown.values, candidates.values, layout, options);
      return std::vector<HostTensor>{state, shown};
    };
    return c;
  }

  static void step(std::vector<double>& state, std::vector<double>& progress, const std::vector<double>& candidates,
                   const SequenceStateLayout& layout, const Variant& options) {
    uint32_t running = 0;
    for (uint32_t row = 0; row < layout.rows; ++row) {
      double& now = state[layout.states + row];
      if (now == SEQUENCE_RUNNING) {
        const double id = candidates[row * options.candidates * 2 + 1];
        progress[layout.progress_token(row, static_cast<uint32_t>(state[layout.counts + row]))] = id;
        state[layout.tokens + row] = id;
        state[layout.positions + row] += state[layout.fed + row];
        state[layout.fed + row] = 1;
        state[layout.counts + row] += 1;
        if (state[layout.counts + row] >= state[layout.limits + row] ||
            state[layout.positions + row] >= layout.capacity)
          now = SEQUENCE_LIMITED;
        if (std::ranges::count(options.stops, static_cast<uint32_t>(id)) > 0) now = SEQUENCE_STOPPED;
      }
      if (now == SEQUENCE_RUNNING) ++running;
      progress[layout.progress_count(row)] = state[layout.counts + row];
      progress[layout.progress_state(row)] = now;
    }
    progress[0] = state[layout.steps] += 1;
    progress[1] = running;
  }
};

}  // namespace

const OpCases& advance_cases() {
  static const AdvanceCases cases;
  return cases;
}

}  // namespace mulciber::conformance
