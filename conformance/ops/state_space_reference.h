// Common parts of the cases of both ops of a selective state-space layer.
#pragma once

#include "conformance/bounds.h"
#include "conformance/op_case.h"
#include "ops/state_space.h"

namespace mulciber::conformance {

struct StateSpaceVariant {
  uint64_t rows = 1, length = 1;
  StateSpaceSizes sizes = {};
  bool unequal = false;  // rows of fewer and fewer tokens, and one that begins
  double deviation = 1;
};

/// Tokens before a row's, and the number of a row's tokens that count.
uint32_t position_of(const StateSpaceVariant& v, uint64_t row);
uint32_t count_of(const StateSpaceVariant& v, uint64_t row);

/// The elements of the work at which its parts begin.
struct StateSpacePlaces {
  explicit StateSpacePlaces(const StateSpaceVariant& v);
  uint64_t convolved, steps, pairs;
};

/// Makes the case except for its reference: inputs 0 work, 1 weights, 2 state, 3 control; outputs
/// work and state. columns: of the weights, for each channel.
using StateSpaceOp = void (*)(ProgramBuilder&, const StateSpaceSizes&, const StateSpaceWork&,
                              const Tensor&, const SequenceStates&);
OpCase state_space_case(const StateSpaceVariant& v, StateSpaceOp op, CaseInput weights);

/// Copies of the tensors that the op changes, with bounds of 0.
struct StateSpaceOutputs {
  explicit StateSpaceOutputs(std::span<const CpuTensor> inputs);
  CpuTensor work, state;
  std::vector<CpuTensor> all() const { return {work, state}; }
};

/// Sizes and kinds of rows for both ops.
std::vector<StateSpaceVariant> state_space_variants();
/// A variant from rows, length and channels. Throws ShapeError.
StateSpaceVariant state_space_variant(const char* op, std::span<const uint64_t> shape);

}  // namespace mulciber::conformance
