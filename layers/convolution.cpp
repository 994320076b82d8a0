#include "layers/convolution.h"

#include <algorithm>

#include <fmt/format.h>

#include "mulciber/error.h"
#include "ops/copy.h"
#include "ops/elementwise.h"

namespace mulciber {

Tensor unfold_by_twos(ProgramBuilder& builder, const Tensor& x) {
  const uint64_t length = x.shape.rows(), columns = x.shape.columns();
  if (length < 4 || length % 2 != 0)
    throw ShapeError(builder.path(), fmt::format("{} rows cannot be taken by twos", length),
                     "give an even number of rows, four or more");
  const uint64_t windows = length / 2;
  const auto width = static_cast<uint32_t>(columns);
  const Tensor result = builder.activation({windows, 3 * columns}, x.type);
  // Two rows of x, side by side, are the second and third tap of one window; the second row is also
  // the first tap of the next window.
  const Tensor pairs = x.reshaped({windows, 2 * columns});
  copy_columns(builder, pairs, result, {.into_column = width});
  copy_columns(builder, pairs.row_slice(0, windows - 1), result.row_slice(1, windows - 1),
               {.first_column = width, .columns = width});
  copy_columns(builder, fill(builder, {1, columns}, 0, x.type), result.row_slice(0, 1));
  return result;
}

std::vector<float> unfold_by_ones(std::span<const float> x, size_t columns) {
  const size_t length = x.size() / columns;
  std::vector<float> result(length * 3 * columns, 0.0f);
  for (size_t row = 0; row < length; ++row) {
    const size_t first = row > 0 ? row - 1 : 0, end = std::min(row + 2, length);
    std::copy(x.begin() + static_cast<std::ptrdiff_t>(first * columns),
              x.begin() + static_cast<std::ptrdiff_t>(end * columns),
              result.begin() + static_cast<std::ptrdiff_t>((row * 3 + first + 1 - row) * columns));
  }
  return result;
}

Tensor convolve(ProgramBuilder& builder, const Linear& product, const Tensor& windows,
                const std::optional<Tensor>& add) {
  MatmulOptions options = {.bias = product.bias, .activation = Activation::kGelu};
  if (add) options.accumulate_into = convert(builder, *add, windows.type);
  return matmul(builder, windows, product.weight, options);
}

}  // namespace mulciber
