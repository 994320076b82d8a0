// Common parts of the cases of both sampling kernels.
#pragma once

#include <string>
#include <vector>

#include "conformance/op_case.h"
#include "ops/sampling.h"

namespace mulciber::conformance {

/// Rows of one batch, and the logits from which they choose.
struct SampleVariant {
  uint64_t vocabulary = 100;
  std::vector<SampleRow> rows = {{}};
  std::vector<uint32_t> banned = {}, stops = {};
  uint32_t history_capacity = 32, ring = 1;
  uint32_t steps = 1;
  double deviation = 3;     // deviation of the logits
  double levels = 0;        // above 0: logits are multiples of 1 / levels, so that many are equal
  bool odd_values = false;  // -infinity in all rows; NaN in every third, infinity before it
  std::string name = {};
};

SampleStateLayout layout_of(const SampleVariant& v);
/// The words of control before the first step.
std::vector<uint32_t> control_of(const SampleVariant& v);

/// A row after the previous steps.
struct SampledRow {
  std::vector<uint32_t> history;
  uint32_t position, fed, token, count, stopped;

  explicit SampledRow(const SampleRow& row)
      : history(row.history),
        position(row.position),
        fed(row.fed),
        token(row.token),
        count(static_cast<uint32_t>(row.history.size())),
        stopped(row.idle ? SAMPLE_IDLE : SAMPLE_RUNNING) {}
};

/// Does one step of a row; returns the margin of its choice.
double step_reference(const SampleVariant& v, const SampleRow& given,
                      std::span<const double> logits, SampledRow& row);

/// Logits of one step. Rows whose choice would depend on rounding are drawn again, unless
/// `any_margin`.
CaseInput logits_input(const SampleVariant& v, bool any_margin);

/// Rows of one batch with different settings, seeds and histories.
std::vector<SampleRow> rows_with(std::vector<Sampling> samplings, uint64_t vocabulary);

/// A mask that allows some of the ids, including the first; it differs for each step.
IdMask mask_of(uint64_t vocabulary, uint64_t step);

/// The common part of both kernels' cases.
class SampleCases : public OpCases {
 public:
  std::string shape_format() const override { return "rows,vocabulary"; }
  std::vector<std::vector<uint64_t>> bench_shapes() const override;
  OpCase make(std::span<const uint64_t> shape, KernelTypes types) const override;

 protected:
  /// Settings of a plain case.
  virtual Sampling usual() const = 0;
  virtual OpCase case_of(const SampleVariant& v, KernelTypes types) const = 0;
};

}  // namespace mulciber::conformance
