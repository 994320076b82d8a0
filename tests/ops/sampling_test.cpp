// Sampling on the device over many draws, and the stream of tokens whatever the number of steps per
// submission.
#include "ops/sampling.h"

#include <cmath>
#include <cstring>
#include <numeric>

#include "conformance/ops/sample_reference.h"
#include "mulciber/error.h"
#include "tests/catch.h"
#include "tests/device.h"

using namespace mulciber;

namespace {

/// Samples sequences that all see the same logits at every step.
class Sampler {
 public:
  Sampler(std::span<const float> logits, std::span<const SampleRow> rows,
          std::vector<uint32_t> stops = {})
      : layout_(plan_sample_state(all_, static_cast<uint32_t>(rows.size()), 64, 0,
                                  static_cast<uint32_t>(stops.size()), 4)) {
    std::vector<float> all;
    for (size_t row = 0; row < rows.size(); ++row)
      all.insert(all.end(), logits.begin(), logits.end());
    logits_ = make({rows.size(), logits.size()}, DataType::kF32, std::as_bytes(std::span(all)));
    ControlWords state(all_.words());
    initialize_sample_state(state, layout_, rows, {}, stops);
    control_ = make({state.words().size()}, DataType::kU32, state.bytes());
    const std::vector<uint32_t> shown(layout_.progress_words(), 0);
    progress_ = make({shown.size()}, DataType::kU32, std::as_bytes(std::span(shown)));
  }

  void run(uint32_t submissions, uint32_t steps) {
    ProgramBuilder builder(device_, "sampling");
    for (uint32_t step = 0; step < steps; ++step)
      sample(builder, logits_, control_, layout_, progress_);
    Program program = builder.build();
    for (uint32_t i = 0; i < submissions; ++i) program.run();
  }

  ControlWords state() { return ControlWords(read(control_)); }
  std::vector<uint32_t> progress() { return read(progress_); }
  const SampleStateLayout& layout() const { return layout_; }

 private:
  Tensor make(Shape shape, DataType type, std::span<const std::byte> bytes) {
    buffers_.push_back(device_.memory().allocate(bytes.size(), MemoryUsage::kActivations));
    upload(device_, buffers_.back().view(), bytes);
    return buffers_.back().tensor(shape, type);
  }
  std::vector<uint32_t> read(const Tensor& tensor) {
    const std::vector<std::byte> bytes = download(device_, tensor.view);
    std::vector<uint32_t> words(tensor.shape.elements());
    std::memcpy(words.data(), bytes.data(), words.size() * 4);
    return words;
  }

  Device& device_ = tests::shared_device();
  ControlLayout all_;
  SampleStateLayout layout_;
  std::vector<Buffer> buffers_;
  Tensor logits_, control_, progress_;
};

std::vector<SampleRow> rows_of(uint32_t count, const Sampling& sampling) {
  std::vector<SampleRow> rows(count);
  for (uint32_t row = 0; row < count; ++row) {
    rows[row].stream = row;
    rows[row].sampling = sampling;
    rows[row].history = {1, 2, 3};
  }
  return rows;
}

}  // namespace

TEST_CASE("Philox 4x32-10 gives the numbers that its authors publish") {
  // The first word of Random123's known answer for counter and key 0.
  CHECK(conformance::random_number(0, 0, 0) == ((0x6627e8d5u >> 9) + 0.5) * 0x1p-23);
}

TEST_CASE("Ids are drawn as often as their probabilities say") {
  const std::vector<float> logits = {0.5f, -1, 2, 1.5f, -0.25f, 0, 1, -3, 2.25f, 0.75f, -2, 1.75f};
  const std::vector<double> exact(logits.begin(), logits.end());
  constexpr uint32_t kRows = 500, kSteps = 8;
  for (Sampling settings :
       {Sampling{.temperature = 1}, Sampling{.temperature = 0.6f, .top_k = 7, .top_p = 0.9f},
        Sampling{.temperature = 1.5f, .min_p = 0.2f, .typical_p = 0.8f}}) {
    settings.seed = 20240229;
    Sampler sampler(logits, rows_of(kRows, settings));
    sampler.run(1, kSteps);
    const ControlWords state = sampler.state();
    std::vector<double> drawn(logits.size(), 0);
    for (uint32_t row = 0; row < kRows; ++row) {
      for (uint32_t step = 0; step < kSteps; ++step) {
        const uint32_t id = state.get(sampler.layout().history_of(row), 3 + step);
        REQUIRE(id < logits.size());
        drawn[id] += 1;
      }
    }
    const std::vector<double> p = conformance::choose(exact, settings, 0.5).probabilities;
    double chi_square = 0, kinds = 0;
    for (size_t id = 0; id < p.size(); ++id) {
      INFO("id " << id << " drawn " << drawn[id] << " times, probability " << p[id]);
      if (p[id] == 0) {
        CHECK(drawn[id] == 0);
        continue;
      }
      const double expected = p[id] * kRows * kSteps;
      chi_square += (drawn[id] - expected) * (drawn[id] - expected) / expected;
      ++kinds;
    }
    // The bound is the mean + 5 deviations of a chi-square distribution of kinds - 1 degrees of
    // freedom.
    CHECK(kinds > 2);
    CHECK(chi_square < kinds - 1 + 5 * std::sqrt(2 * (kinds - 1)));
  }
}

TEST_CASE("The stream of tokens is the same whatever the steps per submission") {
  std::vector<float> logits(300);
  for (size_t id = 0; id < logits.size(); ++id)
    logits[id] = static_cast<float>(std::sin(0.37 * double(id * id)) * 3);
  const std::vector<SampleRow> rows = rows_of(5, {.temperature = 0.9f, .top_p = 0.95f, .seed = 7});
  Sampler one(logits, rows), three(logits, rows),
      other(logits, rows_of(5, {.temperature = 0.9f, .top_p = 0.95f, .seed = 8}));
  one.run(12, 1);
  three.run(4, 3);
  other.run(12, 1);
  CHECK(one.state().words() == three.state().words());
  CHECK(one.state().words() != other.state().words());
  const std::vector<uint32_t> shown = one.progress();
  const ControlWords state = one.state();
  CHECK(shown == three.progress());
  for (uint32_t row = 0; row < 5; ++row) {
    CHECK(shown[one.layout().progress_count(row)] == 15);
    CHECK(shown[one.layout().progress_stopped(row)] == SAMPLE_RUNNING);
    for (uint32_t token = 11; token < 15; ++token)
      CHECK(shown[one.layout().progress_token(row, token)] ==
            state.get(one.layout().history_of(row), token));
  }
}

TEST_CASE("A stopped row stays where it is") {
  std::vector<float> logits(40, 0);
  logits[17] = 5;
  Sampler sampler(logits, rows_of(2, {.temperature = 0}), {3, 17});
  sampler.run(3, 1);
  const ControlWords state = sampler.state();
  const std::vector<uint32_t> shown = sampler.progress();
  CHECK(std::vector(shown.begin(), shown.begin() + 4) ==
        std::vector<uint32_t>{4, SAMPLE_STOP_ID, 4, SAMPLE_STOP_ID});
  CHECK(state.get(sampler.layout().tokens) == 17);
  CHECK(state.get(sampler.layout().positions) == 1);
}

TEST_CASE("Settings and states that cannot be are refused") {
  CHECK_THROWS_AS(sample_settings({.sampling = {.temperature = -1}}), SettingError);
  CHECK_THROWS_AS(sample_settings({.sampling = {.top_p = 0}}), SettingError);
  CHECK_THROWS_AS(sample_settings({.sampling = {.repetition_penalty = 0}}), SettingError);
  ControlLayout all;
  CHECK_THROWS_AS(plan_sample_state(all, 0, 8, 0, 0), ShapeError);
  const SampleStateLayout layout = plan_sample_state(all, 1, 8, 0, 1);
  ControlWords state(all.words());
  const std::vector<uint32_t> two = {1, 2};
  CHECK_THROWS_AS(initialize_sample_state(state, layout, std::vector<SampleRow>(2)), ShapeError);
  CHECK_THROWS_AS(initialize_sample_state(state, layout, std::vector<SampleRow>(1), two),
                  ShapeError);
}

TEST_CASE("A mask that a row has already is no change") {
  ControlLayout all;
  const SampleStateLayout layout = plan_sample_state(all, 2, 8, 0, 0, 1, 0, 70);
  ControlWords state(all.words());
  const IdMask one = {5, 0, 1}, other = {5, 0, 2}, none = {0, 0, 0};
  CHECK_FALSE(set_mask(state, layout, 0, {}));
  CHECK(set_mask(state, layout, 0, none));  // nothing was masked before
  CHECK(set_mask(state, layout, 0, one));
  CHECK_FALSE(set_mask(state, layout, 0, one));
  CHECK(set_mask(state, layout, 1, one));
  CHECK(set_mask(state, layout, 0, other));
  CHECK(set_mask(state, layout, 0, {}));
  CHECK_FALSE(set_mask(state, layout, 0, {}));
  CHECK(set_mask(state, layout, 0, other));  // equal bits from before, which did not count
  const std::span<const uint32_t> held = state.values(layout.mask_of(0));
  CHECK(std::vector<uint32_t>(held.begin(), held.end()) == std::vector<uint32_t>{1, 5, 0, 2});
  CHECK(state.get(layout.mask_of(1), 3) == 1);
}
