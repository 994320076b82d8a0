#include "models/networks/text_decoder.h"

#include <fmt/format.h>

#include "ops/elementwise.h"
#include "ops/embedding.h"

namespace mulciber {

uint32_t TextDecoder::memory_columns() const {
  return stack.layers.front().self_attention.sizes.memory_columns();
}

void TextDecoder::project(ProgramBuilder& builder, const Tensor& encoded,
                          std::span<const Tensor> memories) const {
  const auto scope = builder.layer("memory");
  for (size_t i = 0; i < stack.layers.size(); ++i) {
    const auto name = builder.scope(fmt::format("layers.{}", i));
    stack.layers[i].cross_attention.project(builder, encoded, memories[i]);
  }
}

Tensor TextDecoder::logits(ProgramBuilder& builder, const Tensor& states) const {
  const auto scope = builder.layer("output");
  const Tensor wide =
      states.type == DataType::kF32 ? states : convert(builder, states, DataType::kF32);
  return output(builder, wide);
}

Tensor TextDecoder::step(ProgramBuilder& builder, const TokenInput& tokens,
                         const StackControl& control, std::span<const Tensor> memories,
                         const Decoder::Step& state,
                         const std::optional<ControlArray<uint32_t>>& picked) const {
  const auto scope = builder.scope("decoder");
  const Tensor embedded = [&] {
    const auto layer = builder.layer("embedding");
    return embedding(builder, tokens);
  }();
  const Tensor states = stack.step(builder, embedded, memories, control, state);
  if (!picked) return logits(builder, states);
  // The embedding kernel picks rows of the hidden states, as of a table.
  const Tensor rows = [&] {
    const auto layer = builder.layer("picked");
    return mulciber::embedding(builder,
                               states.reshaped({states.shape.rows(), states.shape.columns()}),
                               {.control = tokens.control,
                                .tokens = *picked,
                                .rows = static_cast<uint32_t>(picked->count)});
  }();
  return logits(builder, rows);
}

Tensor TextDecoder::pass(ProgramBuilder& builder, const TokenInput& tokens,
                         const StackControl& control, std::span<const Tensor> memories,
                         Trace* trace) const {
  const auto scope = builder.scope("decoder");
  const Tensor embedded = [&] {
    const auto layer = builder.layer("embedding");
    return embedding(builder, tokens, trace);
  }();
  return logits(builder, stack(builder, embedded, memories, control, trace));
}

}  // namespace mulciber
