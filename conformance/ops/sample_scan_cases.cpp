// Cases and reference of sample_scan; conformance/op_cases.cpp declares the cases.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "conformance/bounds.h"
#include "conformance/op_case.h"
#include "conformance/ops/sample_reference.h"
#include "conformance/ops/sample_variant.h"
#include "mulciber/error.h"

namespace mulciber::conformance {
namespace {

constexpr float kInfinityF = std::numeric_limits<float>::infinity();

OpCase sample_scan_case(const SampleVariant& v, KernelTypes types) {
  OpCase c;
  c.types = types;
  c.name = fmt::format("r{}_v{}.{}", v.rows.size(), v.vocabulary, v.name);
  c.degenerate = true;
  c.must_pass = v.vocabulary < 10000;
  c.inputs = {words_input(control_of(v)), logits_input(v, true)};
  c.build = [=](ProgramBuilder& builder, std::span<const Tensor> inputs) {
    return std::vector<Tensor>{sample_scan(builder, inputs[1], inputs[0], layout_of(v)), inputs[1]};
  };
  c.reference = [=](std::span<const CpuTensor> inputs, const Arithmetic&) {
    const uint64_t chunk = v.vocabulary > SAMPLE_MOST_CHUNKS * SAMPLE_LEAST_CHUNK
                               ? SAMPLE_MOST_CHUNK
                               : SAMPLE_LEAST_CHUNK;
    CpuTensor logits = inputs[1], chunks{{}, DataType::kF32, {}, {}};
    logits.bounds.assign(logits.values.size(), 0);
    for (uint64_t r = 0; r < v.rows.size(); ++r) {
      const SampleRow& row = v.rows[r];
      double* own = &logits.values[r * v.vocabulary];
      const size_t held = std::min<size_t>(row.history.size(), v.history_capacity);
      const std::vector<double> after =
          penalized(std::span(own, v.vocabulary), row.sampling, std::span(row.history).last(held),
                    v.banned, row.biases, row.mask);
      std::vector<bool> lost;  // per chunk
      for (uint64_t begin = 0; begin < v.vocabulary; begin += chunk)
        lost.push_back(!are_logits({own + begin, std::min(chunk, v.vocabulary - begin)}));
      for (uint64_t id = 0; id < v.vocabulary; ++id) {
        if (!are_logits({own + id, 1})) {  // a penalty's result does not matter here
          own[id] = 0;
          logits.bounds[r * v.vocabulary + id] = kInfinity;
          continue;
        }
        if (after[id] == own[id]) continue;
        // The error covers a product or quotient, n times a penalty, and two sums.
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
    return std::vector<CpuTensor>{chunks, logits};
  };
  return c;
}

class SampleScanCases : public SampleCases {
 public:
  std::vector<OpCase> samples(KernelTypes types) const override {
    std::vector<OpCase> cases;
    for (uint64_t vocabulary : {1, 2, 7, 31, 255, 256, 257, 1000, 5003, 32000, 262208}) {
      for (bool rules : {false, true}) {
        SampleVariant v{.vocabulary = vocabulary, .name = rules ? "rules" : "plain"};
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
          // Biases of the second row, on ids with and without penalties and on a banned one; and of
          // the third row.
          v.rows[1].biases = {{0, 2.6f},   {3, -1.25f},  {4, 7.f},      {6, -kInfinityF},
                              {255, 0.5f}, {256, -0.5f}, {4000, 100.f}, {4000001, 1.f}};
          v.rows[2].biases = {{2, -100.f}};
          // Masks of some rows, one of them with chunks that are impossible as a whole.
          v.rows[1].mask = mask_of(vocabulary, 7);
          std::fill_n(v.rows[1].mask.begin(), std::min<size_t>(v.rows[1].mask.size(), 8), 0u);
          v.rows[2].mask = mask_of(vocabulary, 13);
          v.history_capacity = 20;
        }
        cases.push_back(sample_scan_case(v, types));
        v.odd_values = true;
        v.name += "_odd_values";
        cases.push_back(sample_scan_case(v, types));
      }
    }
    return cases;
  }

 private:
  Sampling usual() const override { return {.temperature = 0.8f, .repetition_penalty = 1.1f}; }
  OpCase case_of(const SampleVariant& v, KernelTypes types) const override {
    return sample_scan_case(v, types);
  }
};

}  // namespace

const OpCases& sample_scan_cases() {
  static const SampleScanCases cases;
  return cases;
}

}  // namespace mulciber::conformance
