#include "models/networks/recurrent_network.h"

#include <algorithm>

#include <fmt/format.h>

#include "ops/copy.h"

namespace mulciber {
namespace {

/// State tensors before those of the decoder.
constexpr size_t kMemoryTensors = 2;

}  // namespace

const AttentionMemory& RecurrentNetwork::attention() const {
  return std::visit([](const auto& d) -> const AttentionMemory& { return d.attention; }, decoder_);
}

std::vector<StateTensor> RecurrentNetwork::state_tensors(const SearchShape& shape) const {
  std::vector<StateTensor> all = {{{shape.batch, shape.source_length, attention().columns()}},
                                  {{attention().control(shape.batch).words}, DataType::kU32}};
  for (const Shape& state :
       std::visit([&](const auto& d) { return d.state_shapes(shape.rows()); }, decoder_))
    all.push_back({state});
  return all;
}

uint64_t RecurrentNetwork::widest_columns() const {
  uint64_t widest = attention().columns();
  for (const RecurrentLayer& layer : encoder_.layers)
    widest = std::max(widest, gates_of(layer.forward.kind) * layer.forward.units());
  return widest;
}

uint64_t RecurrentNetwork::live_columns() const {
  uint64_t most = 0;
  for (const RecurrentLayer& layer : encoder_.layers) {
    const uint64_t directions = layer.backward ? 2 : 1;
    most =
        std::max(most, layer.forward.input.weight.shape[1] +
                           directions * (gates_of(layer.forward.kind) + 1) * layer.forward.units());
  }
  return most;
}

/// Adds the encoder, and writes the memory and the decoder's first state, with
/// memory.rows_per_memory rows for each sentence. Returns the encoder's outputs, (batch, length,
/// ...).
Tensor RecurrentNetwork::encode_into(ProgramBuilder& builder, const Tensor& control,
                                     const SourceControl& layout, uint32_t batch, uint32_t length,
                                     const RecurrentMemory& memory,
                                     std::span<const Tensor> state) const {
  const std::vector<RecurrentLayer::Result> encoded = [&] {
    const auto scope = builder.scope("encoder");
    const Tensor x = [&] {
      const auto layer = builder.layer("embedding");
      return embedding_(
          builder, {.control = control, .tokens = layout.source, .rows = batch, .length = length});
    }();
    return encoder_(builder, x, RowLengths{control, layout.lengths});
  }();
  const auto scope = builder.layer("memory");
  const Tensor& outputs = encoded.back().outputs;
  attention().project(builder, outputs, {control, layout.lengths}, layout.cross_masks, memory);
  std::visit([&](const auto& d) { d.begin(builder, encoded, memory.rows_per_memory, state); },
             decoder_);
  return outputs;
}

void RecurrentNetwork::encode(ProgramBuilder& builder, const SearchView& view) const {
  encode_into(builder, view.control, view.layout, view.shape.batch, view.shape.source_length,
              {view.state[0], view.state[1], view.shape.beams}, view.state.subspan(kMemoryTensors));
}

Tensor RecurrentNetwork::step(ProgramBuilder& builder, const SearchView& view) const {
  const auto scope = builder.layer("token");
  const uint64_t rows = view.shape.rows();
  const std::span<const Tensor> state = view.state.subspan(kMemoryTensors);
  if (view.shape.beams > 1) {
    for (const Tensor& part : state) follow_beams(builder, view.control, view.beam, part);
  }
  const Tensor words = embedding_(builder, {.control = view.control,
                                            .tokens = view.beam.tokens,
                                            .rows = view.shape.rows(),
                                            .length = 1});
  return std::visit(
      [&](const auto& d) {
        return d.step(builder, words.reshaped({rows, words.shape.columns()}), 0,
                      {view.state[0], view.state[1], view.shape.beams}, state, nullptr);
      },
      decoder_);
}

Tensor RecurrentNetwork::pass(ProgramBuilder& builder, const PassView& view, Trace& trace) const {
  const uint64_t batch = view.shape.batch, source = view.shape.source_length,
                 target = view.shape.target_length;
  const RecurrentMemory memory = {
      builder.activation({batch, source, attention().columns()}),
      builder.activation({attention().control(batch).words}, DataType::kU32)};
  std::vector<Tensor> state;
  for (const Shape& shape :
       std::visit([&](const auto& d) { return d.state_shapes(batch); }, decoder_))
    state.push_back(builder.activation(shape));
  const Tensor outputs = encode_into(builder, view.control, view.layout, view.shape.batch,
                                     view.shape.source_length, memory, state);
  {
    const auto scope = builder.scope("encoder");
    trace.keep(builder, "last_hidden_state", outputs);
  }

  const auto scope = builder.scope("decoder");
  const uint64_t width = output.weight.shape[1];
  const Tensor words = [&] {
    const auto layer = builder.layer("embedding");
    return embedding_(builder, {.control = view.control,
                                .tokens = view.target,
                                .rows = view.shape.batch,
                                .length = view.shape.target_length})
        .reshaped({batch, target * width});
  }();
  const Tensor rows = builder.activation({batch, target, width});
  const Tensor maps = trace.attentions ? builder.activation({batch, 1, target, source}) : Tensor{};
  for (uint64_t t = 0; t < target; ++t) {
    const auto token = builder.layer(fmt::format("tokens.{}", t));
    Tensor map;
    const Tensor row = std::visit(
        [&](const auto& d) {
          return d.step(builder, words, static_cast<uint32_t>(t * width), memory, state,
                        trace.attentions ? &map : nullptr);
        },
        decoder_);
    copy_columns(builder, row.reshaped({batch, width}), rows.reshaped({batch, target * width}),
                 {.into_column = static_cast<uint32_t>(t * width)});
    if (!trace.attentions) continue;
    // The attention weights are equal for all heads.
    copy_columns(builder, map.reshaped({batch, attention().heads * source}),
                 maps.reshaped({batch, target * source}),
                 {.columns = static_cast<uint32_t>(source),
                  .into_column = static_cast<uint32_t>(t * source)});
  }
  if (trace.attentions) trace.keep(builder, "cross_attn.probabilities", maps);
  return rows;
}

std::vector<NetworkOutput> RecurrentNetwork::outputs(const PassShape& wanted) const {
  const uint64_t batch = wanted.batch, source = wanted.source_length, target = wanted.target_length;
  std::vector<NetworkOutput> all = {{"encoder_last_hidden_state",
                                     "encoder.last_hidden_state",
                                     {batch, source, encoded_columns()}}};
  if (wanted.attentions)
    all.push_back(
        {"cross_attentions", "decoder.cross_attn.probabilities", {batch, 1, target, source}, true});
  return all;
}

}  // namespace mulciber
