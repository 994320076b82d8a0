#include "models/core/target_scores.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/embedding.h"

namespace mulciber {

TargetScores::TargetScores(ControlLayout& control, uint32_t rows, uint32_t vocabulary)
    : targets_(control.add<uint32_t>(rows)),
      rows_(rows),
      vocabulary_(vocabulary),
      scan_(plan_sample_state(control, rows, 1, 0, 0)) {}

void TargetScores::initialize(ControlWords& control) const {
  initialize_sample_state(control, scan_, std::vector<SampleRow>(rows_));
  for (uint32_t row = 0; row < rows_; ++row) set_target(control, row, 0);
}

void TargetScores::add(ProgramBuilder& builder, const Tensor& logits, const Tensor& control) {
  chunks_ = sample_scan(builder, logits, control, scan_);
  logits_ = embedding(builder, logits.reshaped({logits.shape.elements(), 1}),
                      {.control = control, .tokens = targets_, .rows = 1, .length = rows_});
  builder.keep(chunks_);
  builder.keep(logits_);
}

std::vector<double> TargetScores::read(Device& device, const Program& program) const {
  const std::vector<float> chunks = download_as<float>(device, program.view(chunks_));
  const std::vector<float> logits = download_as<float>(device, program.view(logits_));
  const size_t count = chunks_.shape[1];
  std::vector<double> scores;
  for (uint32_t row = 0; row < rows_; ++row) {
    const float* of_row = &chunks[row * count * 2];
    double largest = -std::numeric_limits<double>::infinity(), sum = 0;
    for (size_t c = 0; c < count; ++c) largest = std::max<double>(largest, of_row[2 * c]);
    for (size_t c = 0; c < count; ++c) {
      if (of_row[2 * c + 1] > 0) sum += of_row[2 * c + 1] * std::exp(of_row[2 * c] - largest);
      if (of_row[2 * c + 1] < 0) sum = std::numeric_limits<double>::quiet_NaN();
    }
    scores.push_back(logits[row] - largest - std::log(sum));
  }
  return scores;
}

}  // namespace mulciber
