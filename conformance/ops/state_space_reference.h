// What the two ops of a selective state-space layer have in common as cases.
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

/// Tokens before a row's, and how many of a row's count.
uint32_t position_of(const StateSpaceVariant& v, uint64_t row);
uint32_t count_of(const StateSpaceVariant& v, uint64_t row);

/// Where an element stands: of the part of the work that begins behind so many elements, and of a
/// row's state.
struct StateSpacePlaces {
  explicit StateSpacePlaces(const StateSpaceVariant& v);
  uint64_t convolved, steps, pairs;
};

/// The case but for its reference: inputs 0 work, 1 weights, 2 state, 3 control; outputs work and
/// state. columns: of the weights, for each channel.
using StateSpaceOp = void (*)(ProgramBuilder&, const StateSpaceSizes&, const StateSpaceWork&,
                              const Tensor&, const SequenceStates&);
OpCase state_space_case(const StateSpaceVariant& v, StateSpaceOp op, CaseInput weights);

/// Copies of the tensors that the op changes, with bounds of 0.
struct StateSpaceOutputs {
  explicit StateSpaceOutputs(std::span<const HostTensor> inputs);
  HostTensor work, state;
  std::vector<HostTensor> all() const { return {work, state}; }
};

/// Sizes and kinds of rows that both ops are tried with.
std::vector<StateSpaceVariant> state_space_variants();
/// Of rows, length and channels. Throws ShapeError.
StateSpaceVariant state_space_variant(const char* op, std::span<const uint64_t> shape);

}  // namespace mulciber::conformance
