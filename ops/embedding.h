// Token embedding: a row of a table per token, scaled, plus a row of a position table.
#pragma once

#include <optional>

#include "runtime/program.h"

namespace mulciber {

struct EmbeddingOptions {
  Tensor control;  // u32: token ids (rows * length) at tokens_offset
  uint32_t tokens_offset = 0;
  uint32_t rows = 1, length = 1;  // result: (rows, length, D)
  float scale = 1;
  std::optional<Tensor> positions;  // (max positions, D) f32; token i of a row takes first + i
  /// Word of control that holds `first`; -1: first is 0.
  int32_t first_position_offset = -1;
  uint32_t first_position_stride =
      0;  // 1: every row has a first position of its own, one word after the other
  DataType result = DataType::kF32;
};

/// table: (vocabulary, D) of any type but u32 (blocks: the result is f32). Ids and positions past
/// the tables are clamped to their last row (the host checks ids before). A table above the
/// device's storage range is read in slices. Throws ShapeError naming the layer.
Tensor embedding(ProgramBuilder& builder, const Tensor& table, const EmbeddingOptions& options);

}  // namespace mulciber
