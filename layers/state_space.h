// A selective state-space layer: its memory of earlier tokens is a state of fixed size, whatever
// their number. Source: Gu and Dao 2023, arXiv:2312.00752 (Mamba).
#pragma once

#include <optional>

#include "layers/linear.h"
#include "layers/sequence_mixer.h"
#include "ops/state_space.h"

namespace mulciber {

/// Separate root-mean-square norms of the token-dependent parameters: the time step's low-rank
/// vector, B and C. Source: Zuo et al. 2024, arXiv:2410.05355 (Falcon Mamba), whose gains are 1.
struct SelectionNorms {
  Tensor step, pairs;  // gains: (1, rank); (2, states), for B and for C
  float epsilon = 0;
};

struct StateSpace {
  StateSpaceSizes sizes;
  Linear in;           // (2 channels, D): the convolution's input, then the gates
  Tensor convolution;  // (channels, taps), then (channels) biases
  Linear step_down;    // (rank, channels): the time step's low-rank vector
  Linear step_up;      // (channels, rank)
  Linear pairs;        // (2 states, channels): B, then C
  Tensor scan;         // A (channels, states), then D (channels)
  Linear out;          // (D, channels)
  std::optional<SelectionNorms> norms = {};

  /// x, result: (rows, length, D) f32; with `add_to` the result is added to that tensor. Throws
  /// ShapeError naming the layer.
  Tensor operator()(ProgramBuilder& builder, const Tensor& x, const SequenceStates& states,
                    const std::optional<Tensor>& add_to,
                    const AdapterScales* adapters = nullptr) const;
};

/// The layer as a decoder's mixer, with the state and the convolution's last inputs as its cache.
SequenceMixer mixer_of(StateSpace layer);

}  // namespace mulciber
