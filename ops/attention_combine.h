// Flash decoding for several queries: the keys of a tile of queries split over workgroups, and what
// they find combined. Source: Dao, Haziza, Massa and Sizov 2023,
// https://pytorch.org/blog/flash-decoding/.
#pragma once

#include <optional>

#include "runtime/program.h"

namespace mulciber {

/// Parts into which a row splits the keys of each of `tiles` workgroups; 1 where it cannot. Where
/// nothing is asked for (`parts`), they are split on hardware whose compute units the tiles would
/// not half fill, into as many as fill them, each with keys that are worth a further dispatch.
uint32_t key_parts(const Capabilities& device, const Kernel& kernel, uint64_t tiles, uint64_t keys,
                   std::optional<uint32_t> parts);

/// found: (lines, parts, columns + 4) f32: for each head of a query and each part of the keys the
/// weighted sums of values, then the largest score, the sum of weights, the logit of a sink and
/// what its weight counts (those of the first part are read; 0: there is no sink). result: of lines
/// * columns elements, f32 or f16. columns: a multiple of 4.
void attention_combine(ProgramBuilder& builder, const Tensor& found, const Tensor& result);

}  // namespace mulciber
