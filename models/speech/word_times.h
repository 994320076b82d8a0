// When each word of a text is spoken, from cross-attention.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace mulciber {

/// The positions at which a path of least cost first meets each row of attention from `first` on.
/// Row t is the step that chooses token t + 1: its position is where that token begins. Costs come
/// from the attention of chosen heads: each row's share of a position is standardized (mean 0,
/// deviation 1 over all rows), smoothed by a median of 7 positions, and averaged over heads.
/// attention: (layers, heads, rows, positions) row-major, of which the first `used` positions hold
/// sound. Source: Radford et al. 2022, arXiv:2212.04356; the path: Giorgino 2009,
/// doi:10.18637/jss.v031.i07.
std::vector<uint32_t> align_tokens(std::span<const float> attention, uint32_t heads, uint32_t rows,
                                   uint32_t positions, uint32_t first, uint32_t used,
                                   std::span<const std::pair<uint32_t, uint32_t>> chosen);

/// Dynamic time warping: the positions at which a path of least cost through (rows, columns) first
/// meets each row. The path goes to the next row, the next column, or both.
std::vector<uint32_t> dynamic_time_warping(std::span<const double> costs, uint32_t rows,
                                           uint32_t columns);

}  // namespace mulciber
