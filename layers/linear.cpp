#include "layers/linear.h"

#include "mulciber/error.h"

namespace mulciber {
namespace {

// Every part of the weight into its own columns of `options.into` or `options.accumulate_into`.
void all_parts(ProgramBuilder& builder, const Linear& linear, const Tensor& x, MatmulOptions options) {
  auto part = [&](const Tensor& weight) {
    const uint64_t rows = weight.shape[0];
    options.bias = linear.bias;
    if (!linear.below.empty()) options.first_bias = options.first_column;
    matmul(builder, x, weight, options);
    options.first_column += static_cast<uint32_t>(rows);
  };
  part(linear.weight);
  for (const Tensor& weight : linear.below) part(weight);
}

}  // namespace

Tensor Linear::operator()(ProgramBuilder& builder, const Tensor& x, Activation activation,
                          bool gated) const {
  if (below.empty()) return matmul(builder, x, weight, {.bias = bias, .activation = activation, .gated = gated});
  if (gated) throw ShapeError(builder.path(), "gates and what they gate must be stored in one type", "");
  std::vector<uint64_t> extents;
  for (size_t i = 0; i + 1 < x.shape.rank(); ++i) extents.push_back(x.shape[static_cast<int>(i)]);
  extents.push_back(weight.shape[0]);
  for (const Tensor& rows : below) extents.back() += rows.shape[0];
  const Tensor y = builder.activation(Shape(extents), x.type);
  all_parts(builder, *this, x, {.activation = activation, .into = y});
  return y;
}

void Linear::add_to(ProgramBuilder& builder, const Tensor& x, const Tensor& y) const {
  all_parts(builder, *this, x, {.accumulate_into = y});
}

void Linear::write_to(ProgramBuilder& builder, const Tensor& x, const Tensor& y) const {
  all_parts(builder, *this, x, {.into = y});
}

}  // namespace mulciber
