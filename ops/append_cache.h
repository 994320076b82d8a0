// Writes keys and values into a cache.
#pragma once

#include <optional>

#include "ops/control.h"
#include "runtime/program.h"

namespace mulciber {

struct AppendCacheOptions {
  uint32_t first_column = 0;         // first of the copied columns of x
  Tensor control;                    // u32
  ControlArray<uint32_t> positions;  // position of query 0: one for all rows, or one for each
  std::optional<ControlArray<uint32_t>> pages;  // AttentionControl::pages; the cache is paged then
};

/// Writes columns of x: (rows, q_len, ...) into cache: (rows, context, columns) at the row's
/// position + i for query i. Nothing is written past the context. cache: of x's type, or where x is
/// f32 also f16, or q8_0 with columns of whole blocks of 32. Throws ShapeError naming the layer.
void append_cache(ProgramBuilder& builder, const Tensor& x, const Tensor& cache,
                  const AppendCacheOptions& options);

}  // namespace mulciber
