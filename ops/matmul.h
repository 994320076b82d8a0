// Matrix product with a fused epilogue.
#pragma once

#include <optional>
#include <vector>

#include "runtime/program.h"

namespace mulciber {

/// Values are read by shaders/include/activation.glsl.
enum class Activation : uint32_t {
  kNone = 0,
  kRelu = 1,
  kGelu = 2,
  kGeluTanh = 3,
  kSilu = 4,
  kTanh = 5,
  kQuickGelu = 6  // x sigmoid(1.702 x): Hendrycks and Gimpel 2016, arXiv:1606.08415
};

/// A root-mean-square norm that the product of x begins with, as rms_norm (ops/norm.h) does it.
struct RowNorm {
  Tensor gain;  // (K) f32
  float epsilon = 0;
};

struct MatmulOptions {
  /// What is multiplied is rms_norm(x). Of one row of x, in f32, without bias; there is one
  /// dispatch, whose workgroups all normalize the row, and the same bits come out as of two where
  /// rows of `kGpu` serve both.
  std::optional<RowNorm> norm;
  /// f32; (N), or longer where first_bias says which part of it is meant.
  std::optional<Tensor> bias;
  /// Element of bias that goes with the first row of the weight. None: all of bias is meant.
  std::optional<uint32_t> first_bias;
  Activation activation = Activation::kNone;
  /// Added after the activation, and overwritten by the result: y += ... Shape of the result.
  std::optional<Tensor> accumulate_into;
  /// Where the result goes: columns [first_column, first_column + N) of an existing (..., total)
  /// tensor. Without it a new activation tensor is made.
  std::optional<Tensor> into;
  uint32_t first_column = 0;
  /// A new tensor's columns may be rounded up to a multiple of 4. What stands in the last ones is
  /// undefined.
  bool padded = false;
  /// Gated feed-forward: rows 2 i of the weight are gates, rows 2 i + 1 what they gate (and so is
  /// the bias), and the result has N / 2 columns: activation(x Wgate^T + bgate) * (x Wup^T + bup).
  /// WeightSpec::in_turns (checkpoints/weights.h) loads such weights. Source: Shazeer 2020,
  /// arXiv:2002.05202.
  bool gated = false;
  /// Parts into which K is split over workgroups (ops/split_k.h), by rows that can; sums are then
  /// in another order, and take a second dispatch. None: as the device needs it.
  std::optional<uint32_t> depth_parts;
  /// Further segments of the weight, whose rows have other types: (N', K) each, with their results
  /// in the columns that follow. With one row of x up to three block types take one dispatch (a
  /// grouped product), where they lie one after the other in one buffer.
  std::vector<Tensor> more_segments;
};

/// y = activation(x W^T + bias) [+ y].
/// x: (..., K) f32 or f16, or q8_1 (ops/quantize.h); weight: (N, K) of any type but u32 (blocks: x
/// f32 or q8_1; x q8_1: blocks); result: (..., N) of x's type, f32 for q8_1 ((..., N / 2) where
/// gated). Sums in f32. Splits into several nodes where a matrix
/// passes the device's storage range. Throws ShapeError naming the layer when the shapes disagree.
Tensor matmul(ProgramBuilder& builder, const Tensor& x, const Tensor& weight,
              const MatmulOptions& options = {});

/// Whether products of a device should normalize x themselves (MatmulOptions::norm), where they
/// may. Only on hardware: workgroups that run side by side do the same norm in the time of one, and
/// a dispatch and its barrier are saved; a software driver does them in turn.
bool norms_fold(const Capabilities& device);

}  // namespace mulciber
