#include "conformance/ops/sample_variant.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "conformance/bounds.h"
#include "conformance/ops/sample_reference.h"

namespace mulciber::conformance {
namespace {

constexpr uint32_t kFirstSampleWord = 5;
constexpr double kLeastMargin = 2e-5;  // f32 sums of some hundred thousand terms, and some margin

void draw_logits(const SampleVariant& v, uint64_t row, std::span<double> logits,
                 std::mt19937& random) {
  std::normal_distribution<double> normal(0, v.deviation);
  for (double& value : logits) {
    value = normal(random);
    if (v.levels > 0) value = std::round(value * v.levels) / v.levels;
    value = static_cast<float>(value);
  }
  if (!v.odd_values) return;
  for (size_t i = 1; i < logits.size(); i += 7) logits[i] = -kInfinity;
  // One infinity suffices, at any position.
  if (row % 3 == 1) logits[logits.size() / 2] = kInfinity;
  if (row % 3 == 2) logits[logits.size() - 1] = std::nan("");
}

}  // namespace

SampleStateLayout layout_of(const SampleVariant& v) {
  ControlLayout all(kFirstSampleWord);
  size_t biases = 0;
  bool masks = false;
  for (const SampleRow& row : v.rows) {
    biases = std::max(biases, row.biases.size());
    masks = masks || !row.mask.empty();
  }
  return plan_sample_state(
      all, static_cast<uint32_t>(v.rows.size()), v.history_capacity,
      static_cast<uint32_t>(v.banned.size()) + 2, static_cast<uint32_t>(v.stops.size()) + 1, v.ring,
      static_cast<uint32_t>(biases), masks ? static_cast<uint32_t>(v.vocabulary) : 0);
}

std::vector<uint32_t> control_of(const SampleVariant& v) {
  const SampleStateLayout layout = layout_of(v);
  ControlWords control(layout.stops.end(), 0xffffffff);
  initialize_sample_state(control, layout, v.rows, v.banned, v.stops);
  return control.words();
}

double step_reference(const SampleVariant& v, const SampleRow& given,
                      std::span<const double> logits, SampledRow& row) {
  if (row.stopped != SAMPLE_RUNNING) return kInfinity;
  if (!are_logits(logits)) {
    row.stopped = SAMPLE_NOT_FINITE;
    return kInfinity;
  }
  const size_t held = std::min<size_t>(row.history.size(), v.history_capacity);
  const std::span<const uint32_t> window = std::span(row.history).last(held);
  const Choice choice =
      choose(penalized(logits, given.sampling, window, v.banned, given.biases, given.mask),
             given.sampling, random_number(given.sampling.seed, row.count, given.stream));
  row.history.push_back(choice.id);
  row.position += row.fed;
  row.token = choice.id;
  ++row.count;
  if (row.position >= given.last_position || row.count >= given.last_count)
    row.stopped = SAMPLE_LIMIT;
  if (std::ranges::count(v.stops, choice.id) > 0) row.stopped = SAMPLE_STOP_ID;
  row.fed = row.stopped == SAMPLE_RUNNING ? 1 : 0;
  return choice.margin;
}

CaseInput logits_input(const SampleVariant& v, bool any_margin) {
  const uint64_t rows = v.rows.size();
  return {
      {rows, v.vocabulary}, DataType::kF32, [=](std::vector<double>& values, std::mt19937& random) {
        for (uint64_t row = 0; row < rows; ++row) {
          const std::span<double> logits(values.data() + row * v.vocabulary, v.vocabulary);
          for (int attempt = 0; attempt < 200; ++attempt) {
            draw_logits(v, row, logits, random);
            SampledRow state(v.rows[row]);
            if (any_margin || step_reference(v, v.rows[row], logits, state) >= kLeastMargin) break;
          }
        }
      }};
}

IdMask mask_of(uint64_t vocabulary, uint64_t step) {
  IdMask mask((vocabulary + 31) / 32);
  for (uint64_t id = 0; id < vocabulary; ++id)
    if (id * id % step < step / 2) mask[id / 32] |= 1u << (id % 32);
  return mask;
}

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

std::vector<std::vector<uint64_t>> SampleCases::bench_shapes() const {
  return {{1, 32000}, {1, 262144}, {8, 128256}};
}

OpCase SampleCases::make(std::span<const uint64_t> shape, KernelTypes types) const {
  if (shape.size() != 2 || shape[0] == 0 || shape[1] == 0) {
    throw ShapeError("sample", "a shape is two positive numbers",
                     "give rows,vocabulary such as 1,32000");
  }
  return case_of({.vocabulary = shape[1],
                  .rows = rows_with(std::vector(shape[0], usual()), shape[1]),
                  .name = "usual"},
                 types);
}

}  // namespace mulciber::conformance
