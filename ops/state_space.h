// Selective state-space layers: a causal convolution and a scan over a sequence, whose last inputs
// and states are kept from pass to pass.
#pragma once

#include "ops/control.h"
#include "runtime/program.h"

namespace mulciber {

/// Most states of a channel: a lane holds them all.
constexpr uint32_t kMostScanStates = 64;
/// Most taps of a channel's convolution.
constexpr uint32_t kMostTaps = 8;

struct StateSpaceSizes {
  uint32_t channels = 0;  // E of the paper
  uint32_t states = 0;    // of a channel, N
  uint32_t taps = 0;      // of the convolution

  /// Of a row of the state, rounded up so that every row begins where a descriptor may.
  uint64_t state_columns() const;
};

/// What a layer computes with between its products, in one tensor, so that an op binds one buffer.
struct StateSpaceWork {
  Tensor tensor;     // all of it
  Tensor projected;  // (rows, length, 2 channels): what is convolved, then the gates
  Tensor convolved;  // (rows, length, channels); the output of the scan takes its place
  Tensor steps;      // (rows, length, channels): time steps before their softplus
  Tensor pairs;      // (rows, length, 2 states): B, then C
};
/// Throws ShapeError naming the layer where one descriptor does not cover it.
StateSpaceWork state_space_work(ProgramBuilder& builder, const StateSpaceSizes& sizes,
                                uint64_t rows, uint64_t length);
/// Elements of such a tensor, and the parts of one that is there.
uint64_t state_space_elements(const StateSpaceSizes& sizes, uint64_t rows, uint64_t length);
StateSpaceWork state_space_work_in(const Tensor& tensor, const StateSpaceSizes& sizes,
                                   uint64_t rows, uint64_t length);

/// States of sequences, which outlive programs.
struct SequenceStates {
  Tensor tensor;   // (rows, 1, StateSpaceSizes::state_columns()) f32, changed in place
  Tensor control;  // u32
  /// (rows): tokens before these. A row that has none begins, whatever the tensor holds of it.
  ControlArray<uint32_t> positions;
  /// (rows): how many of a row's tokens count. Those behind them are padding: they change no state,
  /// and what comes of them is 0. A row without any stays as it is.
  ControlArray<uint32_t> counts;
};

/// work.convolved = silu(sum over i of taps[i] x[t - TAPS + 1 + i] + bias), x being the first half
/// of work.projected. weights: (channels, taps), then (channels) biases, f32. Throws ShapeError
/// naming the layer.
void causal_convolution(ProgramBuilder& builder, const StateSpaceSizes& sizes,
                        const StateSpaceWork& work, const Tensor& weights,
                        const SequenceStates& states);

/// With u = work.convolved, s = softplus(work.steps) and B, C of work.pairs, of each channel
/// h = exp(s A) h + s B u; work.convolved becomes (C h + D u) silu(gate). weights: A (channels,
/// states), then D (channels), f32. Throws ShapeError naming the layer.
/// Source: Gu and Dao 2023, arXiv:2312.00752, algorithm 2.
void selective_scan(ProgramBuilder& builder, const StateSpaceSizes& sizes,
                    const StateSpaceWork& work, const Tensor& weights,
                    const SequenceStates& states);

}  // namespace mulciber
