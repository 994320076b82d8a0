// Cases and reference of follow_beams; conformance/op_cases.cpp declares the cases.
#include <fmt/format.h>

#include "conformance/op_case.h"
#include "mulciber/error.h"
#include "ops/search.h"

namespace mulciber::conformance {
namespace {

struct FollowBeamsVariant {
  uint32_t batch = 1, beams = 1;
  uint64_t states = 1, columns = 1;
  uint32_t position = 3;  // for item 0; the others are `apart`, 2 * apart, ... further
  uint32_t apart = 0;
  uint32_t first_word = 0;
  bool some_done = false;
};

constexpr uint32_t kFollowBeamsCapacity = 7;

uint32_t follow_beams_position(const FollowBeamsVariant& v, uint32_t item) {
  return (v.position + item * v.apart) % kFollowBeamsCapacity;
}

/// A search whose hypotheses come from arbitrary beams of their item, several of them from one
/// beam.
std::vector<uint32_t> follow_beams_words(const FollowBeamsVariant& v, const BeamStateLayout& layout,
                                         uint32_t words) {
  ControlWords control(words, 0xffffffff);
  initialize_beam_state(control, layout, {.ends = {0}, .max_length = kFollowBeamsCapacity});
  const uint32_t rows = v.batch * v.beams;
  for (uint32_t row = 0; row < rows; ++row) {
    const uint32_t item = row / v.beams, beam = row % v.beams;
    control.set(layout.positions, row, follow_beams_position(v, item));
    for (uint32_t position = 1; position <= follow_beams_position(v, item); ++position) {
      control.set(layout.history_parents, position * rows + row,
                  item * v.beams + (beam * 3 + item * 2 + position + beam / 2) % v.beams);
    }
  }
  for (uint32_t item = 0; item < v.batch && v.some_done; item += 2) {
    control.set(layout.items, item, {.status = BEAM_DONE});
  }
  return control.words();
}

OpCase follow_beams_case(const FollowBeamsVariant& v) {
  OpCase c;
  c.name =
      fmt::format("b{}_beams{}_s{}_n{}.at{}", v.batch, v.beams, v.states, v.columns, v.position);
  if (v.apart > 0) c.name += fmt::format("_apart{}", v.apart);
  if (v.some_done) c.name += ".done";
  c.types = {DataType::kF32, DataType::kF32};
  c.exact = true;  // nothing is computed
  c.must_pass = v.beams == 5;
  ControlLayout all(v.first_word);
  const BeamStateLayout layout =
      plan_beam_state(all, v.batch, v.beams, kFollowBeamsCapacity, {.banned = 1});
  c.inputs = {
      words_input(follow_beams_words(v, layout, all.words())),
      whole_input({v.states, uint64_t{v.batch} * v.beams, v.columns}, DataType::kF32, 2000)};
  c.build = [=](ProgramBuilder& builder, std::span<const Tensor> inputs) {
    follow_beams(builder, inputs[0], layout, inputs[1]);
    return std::vector<Tensor>{inputs[1]};
  };
  c.reference = [=](std::span<const CpuTensor> inputs, const Arithmetic&) {
    const ControlWords control(
        std::vector<uint32_t>(inputs[0].values.begin(), inputs[0].values.end()));
    const uint64_t rows = uint64_t{v.batch} * v.beams;
    CpuTensor state = inputs[1];
    for (uint64_t s = 0; s < v.states; ++s) {
      for (uint64_t row = 0; row < rows; ++row) {
        const auto item = static_cast<uint32_t>(row / v.beams);
        if (control.get(layout.items, item).status != BEAM_SEARCHES) continue;
        const uint64_t parent =
            control.get(layout.history_parents,
                        static_cast<uint32_t>(follow_beams_position(v, item) * rows + row));
        for (uint64_t i = 0; i < v.columns; ++i) {
          state.values[(s * rows + row) * v.columns + i] =
              inputs[1].values[(s * rows + parent) * v.columns + i];
        }
      }
    }
    return std::vector<CpuTensor>{state};
  };
  return c;
}

class FollowBeamsCases : public OpCases {
 public:
  std::string shape_format() const override { return "batch,beams,columns"; }
  bool exact(KernelTypes) const override { return true; }
  std::vector<std::vector<uint64_t>> bench_shapes() const override {
    return {{1, 5, 256}, {16, 5, 512}};
  }
  OpCase make(std::span<const uint64_t> shape, KernelTypes) const override {
    if (shape.size() != 3 || shape[0] == 0 || shape[1] == 0 || shape[1] > 32 || shape[2] == 0) {
      throw ShapeError("follow_beams", "a shape is three positive numbers, beams up to 32",
                       "give batch,beams,columns such as 16,5,512");
    }
    return follow_beams_case({.batch = static_cast<uint32_t>(shape[0]),
                              .beams = static_cast<uint32_t>(shape[1]),
                              .columns = shape[2]});
  }
  std::vector<OpCase> samples(KernelTypes) const override {
    std::vector<OpCase> cases;
    for (uint64_t columns : {1, 3, 63, 64, 65, 130}) {
      cases.push_back(follow_beams_case({.batch = 3, .beams = 5, .columns = columns}));
      cases.push_back(follow_beams_case(
          {.batch = 2, .beams = 2, .states = 3, .columns = columns, .first_word = 5}));
      cases.push_back(follow_beams_case(
          {.batch = 5, .beams = 3, .states = 2, .columns = columns, .some_done = true}));
    }
    // Items that began at different steps.
    cases.push_back(follow_beams_case({.batch = 6, .beams = 5, .columns = 40, .apart = 3}));
    cases.push_back(follow_beams_case(
        {.batch = 9, .beams = 2, .states = 2, .columns = 70, .apart = 2, .some_done = true}));
    // Before the first step, at the last one, without a choice, and with the most beams.
    cases.push_back(follow_beams_case({.batch = 2, .beams = 5, .columns = 20, .position = 0}));
    cases.push_back(follow_beams_case(
        {.batch = 2, .beams = 5, .columns = 20, .position = kFollowBeamsCapacity - 1}));
    cases.push_back(follow_beams_case({.batch = 4, .beams = 1, .columns = 33}));
    cases.push_back(follow_beams_case({.batch = 2, .beams = 32, .columns = 33}));
    cases.push_back(follow_beams_case(
        {.batch = 70, .beams = 4, .states = 2, .columns = 48, .some_done = true}));
    return cases;
  }
};

}  // namespace

const OpCases& follow_beams_cases() {
  static const FollowBeamsCases cases;
  return cases;
}

}  // namespace mulciber::conformance
