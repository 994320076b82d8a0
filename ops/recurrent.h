// Recurrent cells: one step in time of an Elman network, a GRU or an LSTM.
#pragma once

#include <optional>

#include "ops/control.h"
#include "runtime/program.h"

namespace mulciber {

/// The values are read by shaders/recurrent.h.
enum class CellKind : uint32_t {
  kTanh = 0,  // h' = tanh(a): Elman 1990, doi:10.1207/s15516709cog1402_1
  kGru = 1,   // Cho et al. 2014, arXiv:1406.1078, with the reset gate after the product, as PyTorch
              // and cuDNN have it
  kLstm = 2,  // Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 2000
};
const char* name_of(CellKind kind);
/// Number of gates of a cell: its matrices have that many times the hidden size as rows. Order:
/// LSTM input, forget, cell, output; GRU reset, update, new.
uint32_t gates_of(CellKind kind);
/// Number of state vectors: hidden, and for an LSTM the cell.
uint32_t states_of(CellKind kind);

/// The inputs of the gates in one tensor, so that a step binds one buffer: the products of the
/// state with its matrix for one step, then the products of the inputs for all positions.
struct GatePreactivations {
  Tensor tensor;     // the whole tensor
  Tensor recurrent;  // (rows, gates * hidden): W_h h + b_h of this step
  Tensor inputs;     // (rows * length, gates * hidden): W_x x + b_x
};
GatePreactivations gate_preactivations(ProgramBuilder& builder, CellKind kind, uint64_t rows,
                                       uint64_t length, uint64_t hidden);
/// Rows of GatePreactivations::tensor before `inputs`: `rows`, rounded up so that `inputs` begins
/// aligned.
uint64_t rows_before_inputs(uint64_t rows);
/// Splits a tensor of rows_before_inputs(rows) + rows * length rows into both parts.
GatePreactivations gate_preactivations_in(const Tensor& tensor, uint64_t rows);

struct RecurrentStep {
  CellKind kind = CellKind::kLstm;
  uint32_t time = 0;               // this step, below length
  bool reverse = false;            // step t of a row of n positions is position n - 1 - t
  uint32_t first_column = 0;       // column of outputs
  std::optional<Tensor> control;   // u32; none: every row has all positions
  ControlArray<uint32_t> lengths;  // positions of each row, at most `length`
};

/// Computes one step. state: (states, rows, hidden) f32, hidden first, changed in place; outputs:
/// (rows, length, columns) f32; the step writes columns [first_column, first_column + hidden) of
/// one position. When a row has no more positions, its state stays and its outputs are zeros.
/// Throws ShapeError naming the layer.
void recurrent_cell(ProgramBuilder& builder, const GatePreactivations& gates, const Tensor& state,
                    const Tensor& outputs, const RecurrentStep& step);

}  // namespace mulciber
