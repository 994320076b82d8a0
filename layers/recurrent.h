// Recurrent networks over whole sequences: the time loop is part of the program, so that a replay
// runs all of it.
#pragma once

#include <optional>
#include <vector>

#include "layers/linear.h"
#include "ops/recurrent.h"

namespace mulciber {

/// The matrices of one direction, named as in PyTorch: weight_ih, weight_hh, with their biases.
struct RecurrentCell {
  CellKind kind = CellKind::kLstm;
  Linear input;   // (gates * H, D)
  Linear hidden;  // (gates * H, H)

  uint64_t units() const { return hidden.weight.shape.columns(); }
  /// Computes one step of every row. x: (rows, ..., D); state: (states, rows, H), changed in place;
  /// H columns of outputs, (rows, 1, columns), become the new hidden state. Throws ShapeError
  /// naming the layer.
  void step(ProgramBuilder& builder, const Tensor& x, const Tensor& state, const Tensor& outputs,
            uint32_t first_column = 0) const;
};

/// The number of positions of each row of a batch; none: all of them.
struct RowLengths {
  Tensor control;                  // u32
  ControlArray<uint32_t> lengths;  // (rows)
};

/// One layer in one or both directions.
struct RecurrentLayer {
  RecurrentCell forward;
  std::optional<RecurrentCell> backward;  // starts at each row's own last position

  struct Result {
    /// (rows, length, H), or 2 H with forward before backward; zeros past a row's end.
    Tensor outputs;
    Tensor forward_state;  // (states, rows, H), after each row's last position
    std::optional<Tensor> backward_state;
  };
  /// x: (rows, length, D) f32. Both directions start from zeros. Throws ShapeError naming the
  /// layer.
  Result operator()(ProgramBuilder& builder, const Tensor& x,
                    const std::optional<RowLengths>& lengths) const;
};

/// A stack of recurrent layers.
struct RecurrentStack {
  std::vector<RecurrentLayer> layers;

  /// Returns the results of every layer; the last layer's outputs are the stack's. Every layer has
  /// a command buffer of its own, "layers.N".
  std::vector<RecurrentLayer::Result> operator()(ProgramBuilder& builder, const Tensor& x,
                                                 const std::optional<RowLengths>& lengths) const;
};

}  // namespace mulciber
