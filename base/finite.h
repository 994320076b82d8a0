// NaN and infinity among stored numbers.
#pragma once

#include <cstddef>
#include <span>

#include "base/data_type.h"

namespace mulciber {

/// Whether every number of rows is finite: of blocks, their scales. rows: of row_bytes(type,
/// columns), as the device keeps them; integers always are.
bool all_finite(DataType type, uint64_t columns, std::span<const std::byte> rows);

}  // namespace mulciber
