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
  /// Takes words of control from `first_word` on. rows: of logits, each with one target.
  TargetScores(uint32_t first_word, uint32_t rows, uint32_t vocabulary);
  /// The word behind those it takes.
  uint32_t end() const { return scan_.first_word + scan_.words; }

  /// Settings that do not change, into the words of control.
  void initialize(std::span<uint32_t> control) const;
  /// id: below the vocabulary.
  void set_target(std::span<uint32_t> control, uint32_t row, uint32_t id) const {
    control[targets_ + row] = row * vocabulary_ + id;
  }

  /// Adds the end of a pass. logits: (rows, vocabulary) f32.
  void add(ProgramBuilder& builder, const Tensor& logits, const Tensor& control);
  /// log softmax(logits[row])[target], natural, of every row, after a run of the program. NaN for a
  /// row with NaN or infinity among its logits.
  std::vector<double> read(Device& device, const Program& program) const;

 private:
  uint32_t targets_ = 0, rows_ = 0, vocabulary_ = 0;
  SampleStateLayout scan_;
  Tensor chunks_, logits_;  // largest and sum of each part of a row; the targets' logits
};

}  // namespace mulciber
