#include "models/encoder_decoder_programs.h"

#include <fmt/format.h>

#include "models/decoding.h"
#include "runtime/ops/elementwise.h"

namespace mulciber {
namespace {

// Of an id that must not be chosen: e to its power is 0 beside any other logit, and sums stay
// finite.
constexpr float kBannedLogit = -1e30f;

StackControl encoder_control(const Tensor& control, const ControlLayout& layout) {
  return {.tensor = control,
          .lengths = static_cast<int32_t>(layout.lengths),
          .self_masks = static_cast<int32_t>(layout.encoder_masks)};
}

StackControl decoder_control(const Tensor& control, const ControlLayout& layout) {
  return {.tensor = control,
          .lengths = static_cast<int32_t>(layout.lengths),
          .self_masks = static_cast<int32_t>(layout.decoder_masks),
          .cross_masks = static_cast<int32_t>(layout.cross_masks)};
}

/// The vocabulary product, in f32 whatever the activations are: what is chosen hangs on small
/// differences.
Tensor logits_of(ProgramBuilder& builder, const Linear& output, const Tensor& x) {
  const Tensor wide = x.type == DataType::kF32 ? x : convert(builder, x, DataType::kF32);
  return output(builder, wide);  // (..., vocabulary)
}

}  // namespace

ControlLayout plan_control(const EncoderDecoderNetwork& network, uint32_t batch,
                           uint32_t source_length) {
  const uint32_t encoder_masks =
      static_cast<uint32_t>(network.encoder.layers.size()) * network.encoder_heads();
  const uint32_t decoder_masks =
      static_cast<uint32_t>(network.decoder.layers.size()) * network.decoder_heads();
  ControlLayout layout;
  layout.lengths = layout.source + batch * source_length;
  layout.encoder_masks = layout.lengths + batch;
  layout.decoder_masks = layout.encoder_masks + encoder_masks;
  layout.cross_masks = layout.decoder_masks + decoder_masks;
  layout.end = layout.cross_masks + decoder_masks;
  return layout;
}

SearchPrograms::SearchPrograms(Device& device, const EncoderDecoderNetwork& network,
                               const SearchShape& wanted)
    : shape(wanted), layout(plan_control(network, wanted.batch, wanted.source_length)) {
  beam =
      plan_beam_state(layout.end, shape.batch, shape.beams, shape.capacity, shape.banned_capacity);
  const uint64_t words = uint64_t{layout.end} + beam.words;
  control = device.memory().allocate(words * sizeof(uint32_t), MemoryUse::kDevice);
  progress = device.memory().allocate(2 * sizeof(uint32_t), MemoryUse::kHost);
  const Tensor control_tensor = control.tensor({words}, DataType::kU32);
  if (shape.masked_output) {
    const uint64_t bytes = uint64_t{network.target_vocabulary} * sizeof(float);
    output_bias = device.memory().allocate(bytes, MemoryUse::kDevice);
    output_bias_values.assign(network.target_vocabulary, 0.0f);
    if (network.output.bias) {
      BufferView bias = network.output.bias->view;
      bias.size = bytes;
      output_bias_values = download_as<float>(device, bias);
    }
  }

  std::vector<Tensor> memory_tensors, cache_tensors;
  const auto add = [&](std::vector<Buffer>& buffers, std::vector<Tensor>& tensors, Shape extents) {
    buffers.push_back(device.memory().allocate(extents.elements() * size_of(network.activations),
                                               MemoryUse::kDevice));
    tensors.push_back(buffers.back().tensor(extents, network.activations));
  };
  for (const DecoderLayer& layer : network.decoder.layers) {
    add(memories, memory_tensors,
        {shape.batch, shape.source_length, layer.cross_attention.sizes.memory_columns()});
    add(caches, cache_tensors,
        {uint64_t{shape.batch} * shape.beams, shape.capacity,
         layer.self_attention.sizes.memory_columns()});
  }
  encode = build_encode(device, network, control_tensor, memory_tensors);
  step = build_step(device, network, control_tensor, memory_tensors, cache_tensors);
}

void SearchPrograms::write_output_bias(Device& device, std::span<const uint32_t> banned) {
  if (!shape.masked_output) return;
  std::vector<float> values = output_bias_values;
  for (uint32_t id : banned) values[id] = kBannedLogit;
  BufferView to = output_bias.view();
  to.size = values.size() * sizeof(float);
  upload(device, to, std::as_bytes(std::span(values)));
}

Program SearchPrograms::build_encode(Device& device, const EncoderDecoderNetwork& network,
                                     const Tensor& control_tensor,
                                     std::span<const Tensor> memory_tensors) const {
  ProgramBuilder builder(device, "encode");
  const TokenInput tokens = {.control = control_tensor,
                             .tokens = layout.source,
                             .rows = shape.batch,
                             .length = shape.source_length,
                             .type = network.activations};
  const Tensor encoded = [&] {
    const auto scope = builder.scope("encoder");
    return network.encoder(builder, tokens, encoder_control(control_tensor, layout));
  }();
  const auto scope = builder.layer("memory");
  for (size_t i = 0; i < network.decoder.layers.size(); ++i) {
    const auto name = builder.scope(fmt::format("layers.{}", i));
    network.decoder.layers[i].cross_attention.project(builder, encoded, memory_tensors[i]);
  }
  return builder.build();
}

Program SearchPrograms::build_step(Device& device, const EncoderDecoderNetwork& network,
                                   const Tensor& control_tensor,
                                   std::span<const Tensor> memory_tensors,
                                   std::span<const Tensor> cache_tensors) const {
  const uint32_t rows = shape.batch * shape.beams;
  ProgramBuilder builder(device, "decode step");
  const auto scope = builder.scope("decoder");
  const TokenInput tokens = {.control = control_tensor,
                             .tokens = beam.tokens,
                             .rows = rows,
                             .length = 1,
                             .first_position = static_cast<int32_t>(beam.position),
                             .type = network.activations};
  const Decoder::Step state = {
      .position = static_cast<int32_t>(beam.position),
      .ancestry = shape.beams > 1 ? static_cast<int32_t>(beam.ancestry) : -1,
      .rows_per_memory = shape.beams,
      .caches = cache_tensors};
  const Tensor x = network.decoder.step(builder, tokens, memory_tensors,
                                        decoder_control(control_tensor, layout), state);

  const auto choice = builder.layer("choice");
  Linear output = network.output;
  if (shape.masked_output)
    output.bias = output_bias.tensor({network.target_vocabulary}, DataType::kF32);
  const Tensor logits = logits_of(builder, output, x).reshaped({rows, network.target_vocabulary});
  const Tensor candidates =
      top_k(builder, logits, candidates_per_row(shape.beams, network.target_vocabulary),
            control_tensor, beam.rules());
  beam_step(builder, candidates, control_tensor, beam, progress.tensor({2}, DataType::kU32));
  return builder.build();
}

PassProgram::PassProgram(Device& device, const EncoderDecoderNetwork& network,
                         const PassShape& wanted)
    : shape(wanted), layout(plan_control(network, wanted.batch, wanted.source_length)) {
  target = layout.end;
  words = target + shape.batch * shape.target_length;
  control = device.memory().allocate(uint64_t{words} * sizeof(uint32_t), MemoryUse::kDevice);
  const Tensor control_tensor = control.tensor({words}, DataType::kU32);
  trace.hidden_states = shape.hidden_states;
  trace.attentions = shape.attentions;

  ProgramBuilder builder(device, "forward");
  TokenInput tokens = {.control = control_tensor,
                       .tokens = layout.source,
                       .rows = shape.batch,
                       .length = shape.source_length,
                       .type = network.activations};
  const Tensor encoded = [&] {
    const auto scope = builder.scope("encoder");
    const Tensor x =
        network.encoder(builder, tokens, encoder_control(control_tensor, layout), &trace);
    trace.keep(builder, "last_hidden_state", x);
    return x;
  }();

  const auto scope = builder.scope("decoder");
  std::vector<Tensor> memories;
  for (size_t i = 0; i < network.decoder.layers.size(); ++i) {
    const auto name = builder.scope(fmt::format("memory.{}", i));
    memories.push_back(network.decoder.layers[i].cross_attention.project(builder, encoded));
  }
  tokens.tokens = target;
  tokens.length = shape.target_length;
  const Tensor x =
      network.decoder(builder, tokens, memories, decoder_control(control_tensor, layout), &trace);
  if (shape.logits) {
    const auto name = builder.layer("output");
    trace.keep(builder, "logits", logits_of(builder, network.output, x));
  }
  program = builder.build();
}

}  // namespace mulciber
