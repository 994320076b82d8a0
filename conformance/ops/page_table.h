// Pages of a cache in cases: the positions of rows are spread over a pool.
#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

namespace mulciber::conformance {

/// page 0: contiguous rows of `context` positions. Otherwise rows are whole pages, and the pool has
/// one page more than they need.
struct PageTable {
  uint32_t page = 0;
  uint64_t rows = 1, context = 1;

  uint64_t row_pages() const { return context / page; }
  uint64_t pool() const { return rows * row_pages() + 1; }
  /// Number of page i of a row.
  uint64_t number(uint64_t row, uint64_t i) const {
    uint64_t step = pool() / 3 + 2;
    while (std::gcd(step, pool()) != 1) ++step;
    return (row * row_pages() + i + 1) * step % pool();
  }
  /// Index of a row's position in the whole cache.
  uint64_t place(uint64_t row, uint64_t position) const {
    if (page == 0) return row * context + position;
    return number(row, position / page) * page + position % page;
  }
  /// Page numbers in control's format.
  std::vector<uint32_t> numbers() const {
    std::vector<uint32_t> all;
    for (uint64_t row = 0; row < rows; ++row)
      for (uint64_t i = 0; i < row_pages(); ++i)
        all.push_back(static_cast<uint32_t>(number(row, i)));
    return all;
  }
};

}  // namespace mulciber::conformance
