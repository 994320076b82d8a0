// Selective state-space layers: a causal convolution and a scan over a sequence. Their last inputs
// and states are kept between passes.
#pragma once

#include "ops/control.h"
#include "runtime/program.h"

namespace mulciber {

/// Most states of a channel: one lane holds all of them.
constexpr uint32_t kMostScanStates = 64;
/// Most taps of a channel's convolution.
constexpr uint32_t kMostTaps = 8;

struct StateSpaceSizes {
  uint32_t channels = 0;  // E in the paper
  uint32_t states = 0;    // per channel, N in the paper
  uint32_t taps = 0;      // length of the convolution

  /// Columns of a row of the state, rounded up so that every row is aligned for a descriptor.
  uint64_t state_columns() const;
};

/// The intermediate values of a layer in one tensor, so that an op binds one buffer.
struct StateSpaceWork {
  Tensor tensor;     // the whole tensor
  Tensor projected;  // (rows, length, 2 channels): the convolution's input, then the gates
  Tensor convolved;  // (rows, length, channels); the scan's output overwrites it
  Tensor steps;      // (rows, length, channels): time steps before their softplus
  Tensor pairs;      // (rows, length, 2 states): B, then C
};
/// Makes the tensor. Throws ShapeError naming the layer where one descriptor does not cover it.
StateSpaceWork state_space_work(ProgramBuilder& builder, const StateSpaceSizes& sizes,
                                uint64_t rows, uint64_t length);
/// Elements of such a tensor; and the parts of an existing one.
uint64_t state_space_elements(const StateSpaceSizes& sizes, uint64_t rows, uint64_t length);
StateSpaceWork state_space_work_in(const Tensor& tensor, const StateSpaceSizes& sizes,
                                   uint64_t rows, uint64_t length);

/// States of sequences, which outlive programs.
struct SequenceStates {
  Tensor tensor;   // (rows, 1, StateSpaceSizes::state_columns()) f32, changed in place
  Tensor control;  // u32
  /// (rows): number of earlier tokens. A row without any starts anew, whatever the tensor holds.
  ControlArray<uint32_t> positions;
  /// (rows): number of a row's tokens that count. Later ones are padding: they change no state, and
  /// their results are 0. A row without any keeps its state.
  ControlArray<uint32_t> counts;
};

/// Computes work.convolved = silu(sum over i of taps[i] x[t - TAPS + 1 + i] + bias), x being the
/// first half of work.projected. weights: (channels, taps), then (channels) biases, f32. Throws
/// ShapeError naming the layer.
void causal_convolution(ProgramBuilder& builder, const StateSpaceSizes& sizes,
                        const StateSpaceWork& work, const Tensor& weights,
                        const SequenceStates& states);

/// Computes, with u = work.convolved, s = softplus(work.steps) and B, C of work.pairs, for each
/// channel h = exp(s A) h + s B u; work.convolved becomes (C h + D u) silu(gate). weights: A
/// (channels, states), then D (channels), f32. Throws ShapeError naming the layer.
/// Source: Gu and Dao 2023, arXiv:2312.00752, algorithm 2.
void selective_scan(ProgramBuilder& builder, const StateSpaceSizes& sizes,
                    const StateSpaceWork& work, const Tensor& weights,
                    const SequenceStates& states);

}  // namespace mulciber
