// Writing keys and values into a cache.
#pragma once

#include <optional>

#include "ops/control.h"
#include "runtime/program.h"

namespace mulciber {

struct AppendCacheOptions {
  uint32_t first_column = 0;         // of x
  Tensor control;                    // u32
  ControlArray<uint32_t> positions;  // of the first query: one for all rows, or one for each
  std::optional<ControlArray<uint32_t>> pages;  // AttentionControl::pages, and the cache as there
};

/// Writes columns of x: (rows, q_len, ...) into cache: (rows, context, columns) at the row's
/// position + i for query i. Nothing is written past the context. cache: of x's type, or of less:
/// f16; q8_0, where x is f32 and columns are whole blocks of 32. Throws ShapeError naming the
/// layer.
void append_cache(ProgramBuilder& builder, const Tensor& x, const Tensor& cache,
                  const AppendCacheOptions& options);

}  // namespace mulciber
