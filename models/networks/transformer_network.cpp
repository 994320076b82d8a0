#include "models/networks/transformer_network.h"

#include <algorithm>

#include <fmt/format.h>

namespace mulciber {
namespace {

StackControl encoder_control(const TransformerNetwork& network, const Tensor& control,
                             const SourceControl& layout) {
  return {.tensor = control,
          .lengths = layout.lengths,
          .self_masks = layout.encoder_masks,
          .self_bias = layout.encoder_bias,
          .self_bias_span = network.encoder_bias.span};
}

StackControl decoder_control(const TransformerNetwork& network, const Tensor& control,
                             const SourceControl& layout) {
  return {.tensor = control,
          .lengths = layout.lengths,
          .self_masks = layout.decoder_masks,
          .cross_masks = layout.cross_masks,
          .self_bias = layout.decoder_bias,
          .self_bias_span = network.decoder_bias.span};
}

Tensor normalized(ProgramBuilder& builder, const Norm& norm, const Tensor& x) {
  const auto scope = builder.scope("final_norm");
  return norm(builder, x);
}

Tensor embed(ProgramBuilder& builder, const TokenEmbedding& embedding, const TokenInput& tokens,
             Trace* trace = nullptr) {
  const auto scope = builder.layer("embedding");
  return embedding(builder, tokens, trace);
}

}  // namespace

HeadCounts TransformerNetwork::masked_heads() const {
  const auto encoder_layers = static_cast<uint32_t>(encoder_.layers.size());
  const auto decoder_layers = static_cast<uint32_t>(decoder_.layers.size());
  return {encoder_layers * encoder_heads(), decoder_layers * decoder_heads(),
          decoder_layers * decoder_heads()};
}

std::vector<StateTensor> TransformerNetwork::state_tensors(const SearchShape& shape) const {
  std::vector<StateTensor> all;
  for (const DecoderLayer& layer : decoder_.layers) {
    all.push_back({{shape.batch, shape.source_length, layer.cross_attention.sizes.memory_columns()},
                   activations});
  }
  for (const DecoderLayer& layer : decoder_.layers) {
    all.push_back({{shape.rows(), shape.context, layer.self_attention.sizes.memory_columns()},
                   activations,
                   true});
  }
  return all;
}

uint64_t TransformerNetwork::live_columns() const {
  uint64_t widest_heads = 0;
  for (const DecoderLayer& layer : decoder_.layers) {
    const HeadSizes& self = layer.self_attention.sizes;
    widest_heads = std::max<uint64_t>(widest_heads, self.key_columns() + self.memory_columns());
  }
  // The sum counts the residual stream, a sublayer's result, and the larger of the heads with their
  // output and the hidden layer of the feed-forward network.
  return 2 * uint64_t{width_} + std::max<uint64_t>(widest_heads + width_, widest_hidden_);
}

uint64_t TransformerNetwork::widest_columns() const {
  const HeadSizes& self = decoder_.layers.front().self_attention.sizes;
  return std::max(self.key_columns() + self.memory_columns(), widest_hidden_);
}

void TransformerNetwork::encode(ProgramBuilder& builder, const SearchView& view) const {
  const TokenInput tokens = {.control = view.control,
                             .tokens = view.layout.source,
                             .rows = view.shape.batch,
                             .length = view.shape.source_length,
                             .type = activations};
  const Tensor encoded = [&] {
    const auto scope = builder.scope("encoder");
    return encoder_(builder, embed(builder, source_embedding_, tokens),
                    encoder_control(*this, view.control, view.layout));
  }();
  const auto scope = builder.layer("memory");
  for (size_t i = 0; i < decoder_.layers.size(); ++i) {
    const auto name = builder.scope(fmt::format("layers.{}", i));
    decoder_.layers[i].cross_attention.project(builder, encoded, view.state[i]);
  }
}

Tensor TransformerNetwork::step(ProgramBuilder& builder, const SearchView& view) const {
  const TokenInput tokens = {.control = view.control,
                             .tokens = view.beam.tokens,
                             .rows = view.shape.rows(),
                             .length = 1,
                             .first_position = view.beam.positions,
                             .type = activations};
  const Decoder::Step state = {
      .position = view.beam.positions,
      .ancestry = view.shape.beams > 1 ? std::optional(view.beam.ancestry) : std::nullopt,
      .rows_per_memory = view.shape.beams,
      .caches = view.state.subspan(decoder_.layers.size())};
  const Tensor x = decoder_.step(builder, embed(builder, target_embedding_, tokens),
                                 view.state.first(decoder_.layers.size()),
                                 decoder_control(*this, view.control, view.layout), state);
  return scaled_norm_ ? normalized(builder, scaled_norm_->output, x) : x;
}

Tensor TransformerNetwork::pass(ProgramBuilder& builder, const PassView& view, Trace& trace) const {
  TokenInput tokens = {.control = view.control,
                       .tokens = view.layout.source,
                       .rows = view.shape.batch,
                       .length = view.shape.source_length,
                       .type = activations};
  const Tensor encoded = [&] {
    const auto scope = builder.scope("encoder");
    const Tensor x = encoder_(builder, embed(builder, source_embedding_, tokens, &trace),
                              encoder_control(*this, view.control, view.layout), &trace);
    trace.keep(builder, "last_hidden_state", x);
    return x;
  }();

  const auto scope = builder.scope("decoder");
  std::vector<Tensor> memories;
  for (size_t i = 0; i < decoder_.layers.size(); ++i) {
    const auto name = builder.scope(fmt::format("memory.{}", i));
    memories.push_back(decoder_.layers[i].cross_attention.project(builder, encoded));
  }
  tokens.tokens = view.target;
  tokens.length = view.shape.target_length;
  const Tensor x = decoder_(builder, embed(builder, target_embedding_, tokens, &trace), memories,
                            decoder_control(*this, view.control, view.layout), &trace);
  if (trace.hidden_states)
    trace.keep(builder, "last_hidden_state",
               scaled_norm_ ? normalized(builder, scaled_norm_->states, x) : x);
  return scaled_norm_ ? normalized(builder, scaled_norm_->output, x) : x;
}

std::vector<NetworkOutput> TransformerNetwork::outputs(const PassShape& wanted) const {
  const uint64_t batch = wanted.batch, source = wanted.source_length, target = wanted.target_length;
  std::vector<NetworkOutput> all = {
      {"encoder_last_hidden_state", "encoder.last_hidden_state", {batch, source, width_}}};
  const auto add_stack = [&](const char* stack, size_t layers, uint64_t length, uint64_t heads) {
    if (wanted.hidden_states) {
      const std::string name = fmt::format("{}_hidden_states", stack);
      const std::vector<uint64_t> extents = {batch, length, width_};
      all.push_back({name, fmt::format("{}.embedding.output", stack), extents, true});
      for (size_t i = 0; i + 1 < layers; ++i)
        all.push_back({name, fmt::format("{}.layers.{}.output", stack, i), extents, true});
      // The last output includes the final norm, if there is one.
      all.push_back({name, fmt::format("{}.last_hidden_state", stack), extents, true});
    }
    if (!wanted.attentions) return;
    for (size_t i = 0; i < layers; ++i) {
      all.push_back({fmt::format("{}_attentions", stack),
                     fmt::format("{}.layers.{}.self_attn.probabilities", stack, i),
                     {batch, heads, length, length},
                     true});
    }
  };
  add_stack("encoder", encoder_.layers.size(), source, encoder_heads());
  add_stack("decoder", decoder_.layers.size(), target, decoder_heads());
  for (size_t i = 0; i < decoder_.layers.size() && wanted.attentions; ++i) {
    all.push_back({"cross_attentions",
                   fmt::format("decoder.layers.{}.cross_attn.probabilities", i),
                   {batch, decoder_heads(), target, source},
                   true});
  }
  return all;
}

}  // namespace mulciber
