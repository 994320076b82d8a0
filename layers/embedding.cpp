#include "layers/embedding.h"

#include <cmath>

#include "ops/elementwise.h"

namespace mulciber {

Tensor TokenEmbedding::operator()(ProgramBuilder& builder, const TokenInput& input,
                                  Trace* trace) const {
  Tensor x = embedding(builder, table,
                       {.control = input.control,
                        .tokens = input.tokens,
                        .rows = input.rows,
                        .length = input.length,
                        .scale = scale,
                        .positions = positions,
                        .first_position = input.first_position,
                        .result = input.type});
  if (norm) {
    const auto scope = builder.scope("embedding_norm");
    x = (*norm)(builder, x);
  }
  if (trace && trace->hidden_states) trace->keep_copy(builder, "output", x);
  return x;
}

Tensor SegmentEmbedding::operator()(ProgramBuilder& builder, const Input& input,
                                    Trace* trace) const {
  const TokenInput& tokens = input.tokens;
  const auto rows_of = [&](const Tensor& table, const ControlArray<uint32_t>& ids,
                           const std::optional<Tensor>& added) {
    return embedding(builder, table,
                     {.control = tokens.control,
                      .tokens = ids,
                      .rows = tokens.rows,
                      .length = tokens.length,
                      .positions = added,
                      .result = tokens.type});
  };
  Tensor x = rows_of(words, tokens.tokens, input.positions ? std::nullopt : positions);
  std::optional<Tensor> added;
  if (positions && input.positions) {
    // Without types, every token has type 0: positions past a table use its last row.
    const bool one_type = types && !input.types;
    added = rows_of(*positions, *input.positions,
                    one_type ? std::optional(types->row_slice(0, 1)) : std::nullopt);
  }
  if (types && input.types) {
    const Tensor rows = rows_of(*types, *input.types, std::nullopt);
    added = added ? add(builder, *added, rows) : rows;
  }
  {
    const auto scope = builder.scope("embedding_norm");
    x = norm(builder, x, added);
  }
  if (project) x = (*project)(builder, x);
  if (trace && trace->hidden_states) trace->keep_copy(builder, "output", x);
  return x;
}

std::vector<float> sinusoidal_positions(uint32_t positions, uint32_t width, Wavelengths wavelengths,
                                        uint32_t first) {
  std::vector<float> table(uint64_t{positions} * width);
  const bool whole = wavelengths == Wavelengths::kTensor2Tensor && width > 2;
  const double steps = whole ? width - 2.0 : width;
  const uint32_t sines = (width + 1) / 2;
  for (uint32_t position = 0; position < positions; ++position) {
    float* row = table.data() + uint64_t{position} * width;
    for (uint32_t i = 0; i < width; ++i) {
      const uint32_t pair = i < sines ? i : i - sines;
      const double angle =
          (static_cast<double>(first) + position) / std::pow(10000.0, 2.0 * pair / steps);
      row[i] = static_cast<float>(i < sines ? std::sin(angle) : std::cos(angle));
    }
  }
  return table;
}

}  // namespace mulciber
