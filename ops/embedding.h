// Token embedding: a row of a table per token, scaled, plus a row of a position table.
#pragma once

#include <optional>

#include "ops/control.h"
#include "runtime/program.h"

namespace mulciber {

struct EmbeddingOptions {
  Tensor control;                 // u32
  ControlArray<uint32_t> tokens;  // (rows * length) ids
  uint32_t rows = 1, length = 1;  // result: (rows, length, D)
  float scale = 1;
  std::optional<Tensor> positions;  // (max positions, D) f32; token i of a row takes first + i
  /// Array of `first` in control: one for all rows or one for each; none: first is 0.
  std::optional<ControlArray<uint32_t>> first_position;
  DataType result = DataType::kF32;
};

/// table: (vocabulary, D) of any type but u32 (blocks: the result is f32). Ids and positions past
/// the tables are clamped to the last row (callers check ids before). A table above the device's
/// storage range is read in slices. Throws ShapeError naming the layer.
Tensor embedding(ProgramBuilder& builder, const Tensor& table, const EmbeddingOptions& options);

}  // namespace mulciber
