#include "layers/recurrent_decoder.h"

#include <fmt/format.h>

#include "ops/copy.h"
#include "ops/elementwise.h"

namespace mulciber {
namespace {

/// Copies a state with one row per sentence to the rows of all its beams. from: (states, batch, H);
/// to: (states, batch * beams, H).
void copy_to_beams(ProgramBuilder& builder, const Tensor& from, uint64_t beams, const Tensor& to) {
  const uint64_t rows = from.shape.rows(), columns = from.shape.columns();
  for (uint64_t beam = 0; beam < beams; ++beam) {
    copy_columns(builder, from.reshaped({rows, columns}), to.reshaped({rows, beams * columns}),
                 {.into_column = static_cast<uint32_t>(beam * columns)});
  }
}

}  // namespace

AttentionMemory::Control AttentionMemory::control(uint64_t batch) const {
  ControlLayout layout;
  Control all = {layout.add<uint32_t>(batch), layout.add<float>(heads), {}, 0};
  if (vector) all.vector = layout.add<float>(uint64_t{heads} * key_size);
  all.words = layout.words();
  return all;
}

void AttentionMemory::project(ProgramBuilder& builder, const Tensor& outputs,
                              const RowLengths& lengths, const ControlArray<float>& factor,
                              const RecurrentMemory& memory) const {
  const auto scope = builder.scope("attention");
  matmul(builder, outputs, key.weight, {.bias = key.bias, .into = memory.tensor});
  copy_columns(builder, outputs, memory.tensor, {.into_column = heads * key_size});

  // All that attention reads beside keys and values goes into one tensor of words.
  const Control to = control(outputs.shape[0]);
  const Tensor words = lengths.control.reshaped({1, lengths.control.shape.elements()});
  const Tensor into = memory.control.reshaped({1, memory.control.shape.elements()});
  copy_columns(builder, words, into,
               {.first_column = lengths.lengths.word,
                .columns = to.lengths.count,
                .into_column = to.lengths.word});
  for (uint32_t head = 0; head < heads; ++head)
    copy_columns(
        builder, words, into,
        {.first_column = factor.word, .columns = 1, .into_column = to.factors.part(head, 1).word});
  if (vector)
    copy_columns(builder, vector->reshaped({1, vector->shape.elements()}), into,
                 {.into_column = to.vector->word});
}

Tensor AttentionMemory::operator()(ProgramBuilder& builder, const HeadColumns& q,
                                   const RecurrentMemory& memory, Tensor* map) const {
  const auto scope = builder.scope("attention");
  const Control words = control(memory.tensor.shape[0]);
  const AttentionFamily attention = {
      .options = {.heads = heads,
                  .kv_heads = heads,
                  .head_size = key_size,
                  .value_size = value_size,
                  .score = score,
                  .rows_per_kv = memory.rows_per_memory,
                  .control = AttentionControl{.tensor = memory.control,
                                              .key_counts = words.lengths,
                                              .head_mask = words.factors,
                                              .score_vector = words.vector}},
      .query = query};
  return attention(builder, q, {memory.tensor, 0}, {memory.tensor, heads * key_size}, map);
}

std::vector<Shape> BahdanauDecoder::state_shapes(uint64_t rows) const {
  return {{1, rows, cell.units()}};
}

void BahdanauDecoder::begin(ProgramBuilder& builder,
                            std::span<const RecurrentLayer::Result> encoded, uint64_t beams,
                            std::span<const Tensor> state) const {
  const auto scope = builder.scope("initial");
  copy_to_beams(builder, initial(builder, *encoded.back().backward_state, Activation::kTanh), beams,
                state[0]);
}

Tensor BahdanauDecoder::step(ProgramBuilder& builder, const Tensor& words, uint32_t first_column,
                             const RecurrentMemory& memory, std::span<const Tensor> state,
                             Tensor* map) const {
  const uint64_t rows = state[0].shape[1], units = cell.units(), width = readout.weight.shape[0];
  const Tensor context = attention(builder, {state[0].reshaped({rows, 1, units}), 0}, memory, map);
  const uint64_t inputs = width + attention.value_columns();
  // [y; c], then [y; c; s].
  const Tensor known = builder.activation({rows, 1, inputs}),
               all = builder.activation({rows, 1, inputs + units});
  copy_columns(builder, words, known,
               {.first_column = first_column, .columns = static_cast<uint32_t>(width)});
  copy_columns(builder, context, known, {.into_column = static_cast<uint32_t>(width)});
  copy_columns(builder, known, all);
  {
    const auto scope = builder.scope("cell");
    cell.step(builder, known, state[0], all, static_cast<uint32_t>(inputs));
  }
  const auto scope = builder.scope("readout");
  return readout(builder, all, Activation::kTanh);
}

std::vector<Shape> LuongDecoder::state_shapes(uint64_t rows) const {
  std::vector<Shape> shapes = {{1, rows, cells[0].input.weight.shape[1]}};
  for (const RecurrentCell& cell : cells)
    shapes.push_back({states_of(cell.kind), rows, cell.units()});
  return shapes;
}

void LuongDecoder::begin(ProgramBuilder& builder, std::span<const RecurrentLayer::Result> encoded,
                         uint64_t beams, std::span<const Tensor> state) const {
  const auto scope = builder.scope("initial");
  const Tensor zeros = fill(builder, {1, state[0].shape.columns()}, 0);
  copy_columns(builder, zeros, state[0]);
  for (size_t i = 0; i < cells.size(); ++i)
    copy_to_beams(builder, encoded[i].forward_state, beams, state[1 + i]);
}

Tensor LuongDecoder::step(ProgramBuilder& builder, const Tensor& words, uint32_t first_column,
                          const RecurrentMemory& memory, std::span<const Tensor> state,
                          Tensor* map) const {
  const uint64_t rows = state[0].shape[1];
  const auto width = static_cast<uint32_t>(combine.weight.shape[0]);
  const auto context_columns = static_cast<uint32_t>(attention.value_columns());
  copy_columns(builder, words, state[0], {.first_column = first_column, .columns = width});
  // [c; h] of the last cell.
  const Tensor both = builder.activation({rows, 1, context_columns + cells.back().units()});
  Tensor below = state[0];
  for (size_t i = 0; i < cells.size(); ++i) {
    const auto scope = builder.scope(fmt::format("cells.{}", i));
    const bool last = i + 1 == cells.size();
    const Tensor outputs = last ? both : builder.activation({rows, 1, cells[i].units()});
    cells[i].step(builder, below, state[1 + i], outputs, last ? context_columns : 0);
    below = outputs;
  }
  copy_columns(builder, attention(builder, {both, context_columns}, memory, map), both);
  const auto scope = builder.scope("combine");
  const Tensor attended = combine(builder, both, Activation::kTanh);
  copy_columns(builder, attended, state[0], {.into_column = width});
  return attended;
}

}  // namespace mulciber
