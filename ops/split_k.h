// Split-K: the depth of a product divided over workgroups, where its tiles are too few for the
// device. Source: Osama, Merrill, Cecka, Garland and Owens 2023, arXiv:2301.03598 (section 3.2).
#pragma once

#include "ops/matmul.h"
#include "runtime/kernel.h"

namespace mulciber {

/// How much of K a workgroup of a product takes; K itself where it is not split, as by rows that
/// cannot. tiles: workgroups of the product in one piece. Where nothing is asked for (`parts`), it
/// is split on hardware whose compute units its tiles would not half fill, into as many parts as
/// fill them, each with a depth that is worth a further dispatch.
uint64_t split_depth(const Capabilities& device, const Kernel& kernel, uint64_t tiles,
                     uint64_t depth, std::optional<uint32_t> parts);

/// Adds up the partial sums of a product, in the order of K, and does what its epilogue does.
/// partials: (parts, rows, N) f32; target: (..., columns) f32 or f16, of so many rows; options as
/// of the product, without what concerns x. first_column, first_bias: of this node's results and
/// biases.
void split_k_reduce(ProgramBuilder& builder, const Tensor& partials, const Tensor& target,
                    const MatmulOptions& options, uint32_t first_column, uint32_t first_bias);

}  // namespace mulciber
