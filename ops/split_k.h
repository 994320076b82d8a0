// Split-K: the depth of a product divided over workgroups, where its tiles are too few for the
// device. Source: Osama, Merrill, Cecka, Garland and Owens 2023, arXiv:2301.03598 (section 3.2).
#pragma once

#include "ops/matmul.h"
#include "runtime/kernel.h"

namespace mulciber {

/// The part of K that a workgroup takes; K itself where it is not split, as for kernel rows that
/// cannot. tiles: workgroups of the product without a split. Without a wish (`parts`), K is split
/// on hardware whose compute units the tiles would fill half at most: into as many parts as fill
/// them, each deep enough to be worth a second dispatch.
uint64_t split_depth(const Capabilities& device, const Kernel& kernel, uint64_t tiles,
                     uint64_t depth, std::optional<uint32_t> parts);

/// Adds up the partial sums of a product, in the order of K, and applies the product's epilogue.
/// partials: (parts, rows, N) f32; target: (..., columns) f32 or f16, with as many rows; options:
/// those of the product; options about x are ignored. first_column, first_bias: where this node's
/// results and biases begin.
void split_k_reduce(ProgramBuilder& builder, const Tensor& partials, const Tensor& target,
                    const MatmulOptions& options, uint32_t first_column, uint32_t first_bias);

}  // namespace mulciber
