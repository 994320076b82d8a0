#include "models/networks/text_encoder_network.h"

#include <algorithm>

#include "ops/copy.h"
#include "ops/elementwise.h"
#include "ops/pool.h"

namespace mulciber {
namespace {

Tensor widened(ProgramBuilder& builder, const Tensor& x) {
  return x.type == DataType::kF32 ? x : convert(builder, x, DataType::kF32);
}

/// Hidden states of every row's first token: (rows, D).
Tensor first_states(ProgramBuilder& builder, const Tensor& states) {
  const uint64_t rows = states.shape[0], columns = states.shape.columns();
  const Tensor first = builder.activation({rows, columns}, DataType::kF32);
  copy_columns(builder, states.reshaped({rows, states.shape[1] * columns}), first,
               {.columns = static_cast<uint32_t>(columns)});
  return first;
}

}  // namespace

TextEncoderControl TextEncoderNetwork::plan_control(uint32_t rows, uint32_t length,
                                                    uint32_t packed) const {
  const uint64_t places = uint64_t{rows} * length, ids = packed > 0 ? packed : places;
  ControlLayout all;
  TextEncoderControl control = {.rows = rows, .length = length, .packed = packed};
  control.tokens = all.add<uint32_t>(ids);
  control.lengths = all.add<uint32_t>(rows);
  control.first_position = all.add<uint32_t>(1);
  // The index of a token in a packed batch is not its position.
  const bool listed = config_.embedding.positions == EncoderPositions::kSkipPadding ||
                      (config_.embedding.positions == EncoderPositions::kCounted && packed > 0);
  if (listed) control.positions = all.add<uint32_t>(ids);
  // A single token type needs no ids when positions are listed (layers/embedding.h).
  if (config_.embedding.types > (listed ? 1u : 0u)) control.types = all.add<uint32_t>(ids);
  if (!relative_bias_.empty()) control.relative_bias = all.add<float>(relative_bias_.size());
  if (config_.disentangled) control.distance_rows = all.add<uint32_t>(2 * uint64_t{length} - 1);
  if (packed > 0)
    control.packing = Packing{.tokens = all.add<uint32_t>(places),
                              .places = all.add<uint32_t>(packed),
                              .rows = rows,
                              .length = length};
  control.words = all.words();
  return control;
}

ControlWords TextEncoderNetwork::initial_words(const TextEncoderControl& control) const {
  ControlWords words(control.words);
  words.fill(control.tokens, config_.pad);
  // A row without a text gets one token, because attention needs a key in every row.
  words.fill(control.lengths, 1);
  if (control.positions) words.fill(*control.positions, config_.pad);
  if (control.relative_bias) words.set(*control.relative_bias, relative_bias_);
  if (control.distance_rows)
    for (uint32_t i = 0; i < control.distance_rows->count; ++i)
      words.set(*control.distance_rows, i,
                config_.disentangled->row_of(static_cast<int32_t>(i + 1) -
                                             static_cast<int32_t>(control.length)));
  return words;
}

void TextEncoderNetwork::set_row(ControlWords& words, const TextEncoderControl& control,
                                 uint32_t row, std::span<const uint32_t> ids,
                                 std::span<const uint32_t> types, uint32_t tokens) const {
  words.set(control.lengths, row, tokens);
  set_tokens(words, control, uint64_t{row} * control.length, ids, types);
}

void TextEncoderNetwork::set_packed_row(ControlWords& words, const TextEncoderControl& control,
                                        uint32_t row, uint32_t first, std::span<const uint32_t> ids,
                                        std::span<const uint32_t> types) const {
  const Packing& packing = control.packing.value();
  words.set(control.lengths, row, static_cast<uint32_t>(ids.size()));
  set_tokens(words, control, first, ids, types);
  for (uint32_t i = 0; i < ids.size(); ++i) {
    words.set(packing.tokens, row * packing.length + i, first + i);
    words.set(packing.places, first + i, row * packing.length + i);
  }
}

void TextEncoderNetwork::set_tokens(ControlWords& words, const TextEncoderControl& control,
                                    uint64_t first, std::span<const uint32_t> ids,
                                    std::span<const uint32_t> types) const {
  words.set(control.tokens.part(first, ids.size()), ids);
  if (control.types) words.set(control.types->part(first, types.size()), types);
  if (!control.positions) return;
  const bool counted = config_.embedding.positions == EncoderPositions::kCounted;
  uint32_t count = 0;
  for (uint32_t i = 0; i < ids.size(); ++i) {
    const bool padding = !counted && ids[i] == config_.pad;
    words.set(*control.positions, static_cast<uint32_t>(first + i),
              counted   ? i
              : padding ? config_.pad
                        : config_.pad + ++count);
  }
}

Tensor TextEncoderNetwork::states(ProgramBuilder& builder, const Tensor& control,
                                  const TextEncoderControl& layout, Trace* trace,
                                  const Tensor* words) const {
  std::optional<Packing> packing = layout.packing;
  if (packing) packing->control = control;
  const Tensor embedded = [&] {
    const auto scope = builder.layer("embedding");
    SegmentEmbedding embedding = embedding_;
    if (words) embedding.words = *words;
    return embedding(builder,
                     {.tokens = {.control = control,
                                 .tokens = layout.tokens,
                                 .rows = packing ? 1 : layout.rows,
                                 .length = packing ? layout.packed : layout.length,
                                 .type = activations_},
                      .positions = layout.positions,
                      .types = layout.types},
                     trace);
  }();
  StackControl stack = {
      .tensor = control,
      .lengths = layout.lengths,
      .first_position = layout.first_position,
      .self_bias = layout.relative_bias,
      .self_bias_span = config_.relative_bias ? config_.relative_bias->max_distance : 0,
      .packing = packing};
  if (distances_) {
    const auto scope = builder.layer("distances");
    Tensor distances = *distances_;
    if (distances_norm_) distances = (*distances_norm_)(builder, distances);
    if (activations_ != DataType::kF32) distances = convert(builder, distances, activations_);
    stack.distances =
        DistanceTable{.vectors = distances,
                      .row_of = layout.distance_rows.value(),
                      .content_to_position = config_.disentangled->content_to_position,
                      .position_to_content = config_.disentangled->position_to_content};
  }
  const Tensor states = encoder_(builder, embedded, stack, trace);
  return packing ? packing->spread(builder, states) : states;
}

Tensor TextEncoderNetwork::pool(ProgramBuilder& builder, const Tensor& states,
                                EncoderPooling pooling, const Tensor& control,
                                const TextEncoderControl& layout) const {
  const Tensor wide = widened(builder, states);
  const auto of_mode = [&](PoolMode mode) {
    return mulciber::pool(builder, wide, control, layout.lengths, mode);
  };
  switch (pooling) {
    case EncoderPooling::kFirst: break;
    case EncoderPooling::kMean: return of_mode(PoolMode::kMean);
    case EncoderPooling::kMeanSqrtLength: return of_mode(PoolMode::kMeanSqrtLength);
    case EncoderPooling::kWeightedMean: return of_mode(PoolMode::kWeightedMean);
    case EncoderPooling::kMax: return of_mode(PoolMode::kMax);
    case EncoderPooling::kLast: return of_mode(PoolMode::kLast);
  }
  return first_states(builder, wide);
}

Tensor TextEncoderNetwork::dense(ProgramBuilder& builder, const Tensor& pooled) const {
  Tensor x = pooled;
  for (const auto& [linear, activation] : dense_) {
    const auto scope = builder.scope("dense");
    x = linear(builder, x, activation);
  }
  return x;
}

Tensor TextEncoderNetwork::pooler_output(ProgramBuilder& builder, const Tensor& states) const {
  return pooler_.value()(builder, first_states(builder, widened(builder, states)),
                         config_.pooler_activation);
}

Tensor TextEncoderNetwork::logits(ProgramBuilder& builder, const Tensor& states,
                                  const Tensor& control, const TextEncoderControl& layout) const {
  const Head& head = head_.value();
  Tensor x = pool(builder, states, config_.head.pooling, control, layout);
  if (head.dense) x = (*head.dense)(builder, x, config_.head.activation);
  if (head.norm) x = (*head.norm)(builder, x);
  return head.output(builder, x);
}

Tensor TextEncoderNetwork::spans(ProgramBuilder& builder, const Tensor& states) const {
  return spans_.value()(builder, widened(builder, states));
}

uint64_t TextEncoderNetwork::live_columns() const {
  // The sum counts the residual stream, a sublayer's result, and the larger of attention's columns
  // and the hidden layer.
  return 2 * uint64_t{config_.width} +
         std::max<uint64_t>(attention_columns(),
                            uint64_t{config_.hidden} * (config_.gated ? 2 : 1));
}

uint64_t TextEncoderNetwork::attention_columns() const {
  // The result counts queries, keys, values and attention's output; with rotary embeddings it
  // counts queries, keys and values before and after the rotation.
  return uint64_t{config_.width} * (config_.ropes.empty() ? 4 : 6);
}

uint64_t TextEncoderNetwork::widest_columns() const {
  return std::max<uint64_t>(3 * uint64_t{config_.width},
                            uint64_t{config_.hidden} * (config_.gated ? 2 : 1));
}

}  // namespace mulciber
