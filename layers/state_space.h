// A selective state-space layer: what it knows of the tokens before is a state of one size, however
// many they were. Source: Gu and Dao 2023, arXiv:2312.00752 (Mamba).
#pragma once

#include <optional>

#include "layers/linear.h"
#include "ops/state_space.h"

namespace mulciber {

/// Root-mean-square norms of what a token selects: the time step's low-rank vector, B and C, each
/// by itself. Source: Zuo et al. 2024, arXiv:2410.05355 (Falcon Mamba), whose gains are 1.
struct SelectionNorms {
  Tensor step, pairs;  // gains: (1, rank); (2, states), of B and of C
  float epsilon = 0;
};

struct StateSpace {
  StateSpaceSizes sizes;
  Linear in;           // (2 channels, D): what is convolved, then the gates
  Tensor convolution;  // (channels, taps), then (channels) biases
  Linear step_down;    // (rank, channels): the time step's low-rank vector
  Linear step_up;      // (channels, rank)
  Linear pairs;        // (2 states, channels): B, then C
  Tensor scan;         // A (channels, states), then D (channels)
  Linear out;          // (D, channels)
  std::optional<SelectionNorms> norms = {};

  /// x, result: (rows, length, D) f32; with `add_to` the result is added there. Throws ShapeError
  /// naming the layer.
  Tensor operator()(ProgramBuilder& builder, const Tensor& x, const SequenceStates& states,
                    const std::optional<Tensor>& add_to,
                    const AdapterScales* adapters = nullptr) const;
};

}  // namespace mulciber
