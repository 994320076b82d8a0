// Normalization with learned gains, alone and where a sublayer's result joins the residual stream.
#pragma once

#include <optional>

#include "layers/linear.h"
#include "ops/norm.h"
#include "ops/quantize.h"

namespace mulciber {

enum class NormKind {
  kLayer,    // Ba et al. 2016, arXiv:1607.06450. weight: (2, D), gain first, then bias
  kRms,      // Zhang and Sennrich 2019, arXiv:1910.07467. weight: (D)
  kRmsBoth,  // only for add_and_normalize(): the addend of the stream is normalized too, with row 0
             // of (2, D)
  kRmsAfter,  // like kRmsBoth, but the stream itself is the result: row 1 of (2, D) is not used
};

struct Norm {
  Tensor weight;  // f32
  float epsilon = 1e-5f;
  NormKind kind = NormKind::kLayer;
  bool for_integers = false;  // only integer products take the result, so it is q8_1
  bool folds = false;         // a single product takes the result and may apply this norm itself

  /// Normalizes x [+ residual, for kLayer] over the last dimension. x, residual, result: (..., D).
  Tensor operator()(ProgramBuilder& builder, const Tensor& x,
                    const std::optional<Tensor>& residual = std::nullopt) const;

  /// Normalizes x for a product; with one row the norm may be left to the product.
  Operand for_product(ProgramBuilder& builder, const Tensor& x) const {
    if (folds && kind == NormKind::kRms && builder.rows_as(x.shape.rows()) == 1 &&
        x.type == DataType::kF32)
      return {x, RowNorm{weight, epsilon}};
    return (*this)(builder, x);
  }

  /// Adds a sublayer's result to the stream and normalizes it for the next sublayer.
  /// `sublayer(add_to)` returns its result, or adds it to `add_to` where one is given. Changes
  /// `stream`, (..., D), in place.
  template <typename Sublayer>
  Operand add_and_normalize(ProgramBuilder& builder, const Tensor& stream,
                            Sublayer&& sublayer) const {
    if (kind != NormKind::kRmsBoth && kind != NormKind::kRmsAfter) {
      sublayer(std::optional<Tensor>(stream));
      return for_product(builder, stream);
    }
    return join_result(builder, stream, sublayer(std::optional<Tensor>()));
  }

  /// Does so with the result of a sublayer that cannot add it itself. Not for kLayer.
  Tensor join_result(ProgramBuilder& builder, const Tensor& stream, const Tensor& y) const {
    if (kind == NormKind::kRmsAfter) {
      // The dispatch is that of kRmsBoth; nothing reads the norm that it makes of the stream.
      add_rms_norm(builder, stream, y, weight, epsilon);
      return stream;
    }
    return add_rms_norm(builder, stream, y, weight, epsilon, result_type(builder, stream));
  }

 private:
  std::optional<DataType> result_type(const ProgramBuilder& builder, const Tensor& x) const {
    if (!for_integers || !integers_pay(builder.capabilities(), builder.rows_as(x.shape.rows())))
      return std::nullopt;
    return DataType::kQ8_1;
  }
};

inline Tensor Norm::operator()(ProgramBuilder& builder, const Tensor& x,
                               const std::optional<Tensor>& residual) const {
  const std::optional<DataType> to = result_type(builder, x);
  if (kind == NormKind::kLayer) return layer_norm(builder, x, weight, epsilon, residual, to);
  return rms_norm(builder, x, weight, epsilon, to);
}

}  // namespace mulciber
