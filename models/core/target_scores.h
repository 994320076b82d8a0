// Log probabilities of given tokens, from logits that stay on the device.
#pragma once

#include <span>
#include <vector>

#include "ops/sampling.h"
#include "runtime/program.h"

namespace mulciber {

class TargetScores {
 public:
  TargetScores() = default;
  /// Reserves words in `control`. rows: rows of logits, with one target each.
  TargetScores(ControlLayout& control, uint32_t rows, uint32_t vocabulary);

  /// Writes the settings that stay constant.
  void initialize(ControlWords& control) const;
  /// id: below the vocabulary.
  void set_target(ControlWords& control, uint32_t row, uint32_t id) const {
    control.set(targets_, row, row * vocabulary_ + id);
  }

  /// Adds the operations to the end of a pass. logits: (rows, vocabulary) f32.
  void add(ProgramBuilder& builder, const Tensor& logits, const Tensor& control);
  /// Returns log softmax(logits[row])[target], a natural logarithm, of every row. Call it after a
  /// run of the program. NaN for a row with NaN or infinity among its logits.
  std::vector<double> read(Device& device, const Program& program) const;

 private:
  ControlArray<uint32_t> targets_;  // (rows): flat index of each target's logit
  uint32_t rows_ = 0, vocabulary_ = 0;
  SampleStateLayout scan_;
  Tensor chunks_, logits_;  // maximum and partial sum of each chunk of a row; the targets' logits
};

}  // namespace mulciber
