// Matrix product with a fused epilogue.
#pragma once

#include <optional>
#include <vector>

#include "runtime/program.h"

namespace mulciber {

/// The values are read by shaders/include/activation.glsl.
enum class Activation : uint32_t {
  kNone = 0,
  kRelu = 1,
  kGelu = 2,
  kGeluTanh = 3,
  kSilu = 4,
  kTanh = 5,
  kQuickGelu = 6  // x sigmoid(1.702 x): Hendrycks and Gimpel 2016, arXiv:1606.08415
};

/// A root-mean-square norm that the product applies to x first, as rms_norm() (ops/norm.h) does.
struct RowNorm {
  Tensor gain;  // (K) f32
  float epsilon = 0;
};

struct MatmulOptions {
  /// Multiplies rms_norm(x) instead of x. Only for one row of x, in f32, without bias. One dispatch
  /// does both: each of its workgroups normalizes the row. The result is bitwise that of two
  /// dispatches where rows of `kGpu` serve both.
  std::optional<RowNorm> norm;
  /// f32; (N), or longer where first_bias gives the part to use.
  std::optional<Tensor> bias;
  /// Element of bias for the first row of the weight. None: all of bias is used.
  std::optional<uint32_t> first_bias;
  Activation activation = Activation::kNone;
  /// Tensor to add to after the activation; the result overwrites it: y += ... Its shape is the
  /// result's.
  std::optional<Tensor> accumulate_into;
  /// Destination of the result: columns [first_column, first_column + N) of an existing (...,
  /// total) tensor. Without it a new activation tensor is made.
  std::optional<Tensor> into;
  uint32_t first_column = 0;
  /// A new tensor's columns may be rounded up to a multiple of 4; the content of the added columns
  /// is undefined.
  bool padded = false;
  /// Gated feed-forward: rows 2 i of the weight (and of the bias) are gates, rows 2 i + 1 their
  /// values, and the result has N / 2 columns: activation(x Wgate^T + bgate) * (x Wup^T + bup).
  /// WeightSpec::interleaved (checkpoints/weights.h) loads such weights. Source: Shazeer 2020,
  /// arXiv:2002.05202.
  bool gated = false;
  /// Number of parts into which K is split over workgroups (ops/split_k.h), for kernel rows that
  /// can; sums then have another order and take a second dispatch. None: the device decides.
  std::optional<uint32_t> depth_parts;
  /// Further segments of the weight, with rows of other types: (N', K) each; their results go to
  /// the following columns. With one row of x, up to three block types take one dispatch (a grouped
  /// GEMM) where they lie one after the other in one buffer.
  std::vector<Tensor> more_segments;
};

/// y = activation(x W^T + bias) [+ y].
/// x: (..., K) f32 or f16, or q8_1 (ops/quantize.h); weight: (N, K) of any type but u32 (blocks
/// need x in f32 or q8_1, x in q8_1 needs blocks); result: (..., N) of x's type, f32 for q8_1
/// ((..., N / 2) where gated). Sums in f32. Splits into several nodes where a matrix
/// passes the device's storage range. Throws ShapeError naming the layer when the shapes disagree.
Tensor matmul(ProgramBuilder& builder, const Tensor& x, const Tensor& weight,
              const MatmulOptions& options = {});

/// Whether products on a device should normalize x themselves (MatmulOptions::norm), where they
/// may. True only on hardware: workgroups side by side compute the same norm in the time of one,
/// which saves a dispatch and its barrier. A software driver computes the norms one after the
/// other.
bool norms_fold(const Capabilities& device);

}  // namespace mulciber
