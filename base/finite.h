// Searches stored numbers for NaN and infinity.
#pragma once

#include <cstddef>
#include <span>

#include "base/data_type.h"

namespace mulciber {

/// Whether every number of some rows is finite. In block types these are the scales: integers
/// always are finite. rows: each of row_bytes(type, columns) bytes, in the device's layout.
bool all_finite(DataType type, uint64_t columns, std::span<const std::byte> rows);

}  // namespace mulciber
