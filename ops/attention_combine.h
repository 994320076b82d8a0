// Flash decoding for several queries: the keys of a tile of queries are split over workgroups,
// whose partial sums are then combined. Source: Dao, Haziza, Massa and Sizov 2023,
// https://pytorch.org/blog/flash-decoding/.
#pragma once

#include <optional>

#include "runtime/program.h"

namespace mulciber {

/// Number of parts into which a kernel row splits the keys of each of `tiles` workgroups; 1 where
/// it cannot split. Without a wish (`parts`), keys are split on hardware whose compute units the
/// tiles would fill half at most: into as many parts as fill them, each with enough keys to be
/// worth a second dispatch.
uint32_t key_parts(const Capabilities& device, const Kernel& kernel, uint64_t tiles, uint64_t keys,
                   std::optional<uint32_t> parts);

/// Combines partial sums. found: (lines, parts, columns + 4) f32: a line is a head of a query, and
/// holds for each part of the keys the weighted sums of values, then the largest score, the sum of
/// weights, the logit of a sink and the factor of its weight (only the first part's sink is read;
/// factor 0: no sink). result: lines * columns elements, f32 or f16. columns: a multiple of 4.
void attention_combine(ProgramBuilder& builder, const Tensor& found, const Tensor& result);

}  // namespace mulciber
