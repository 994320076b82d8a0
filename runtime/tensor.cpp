#include "runtime/tensor.h"

#include <fmt/format.h>

#include "mulciber/error.h"

namespace mulciber {

Tensor Tensor::reshaped(Shape to) const {
  if (to.elements() != shape.elements() ||
      (block_elements(type) > 1 && to.columns() != shape.columns())) {
    throw ShapeError("reshape",
                     fmt::format("{} holds {} elements, {} holds {}", shape.to_string(),
                                 shape.elements(), to.to_string(), to.elements()),
                     "");
  }
  Tensor result = *this;
  result.shape = to;
  return result;
}

Tensor Tensor::row_slice(uint64_t first, uint64_t count) const {
  if (first + count > shape.rows()) {
    throw ShapeError("row slice",
                     fmt::format("rows {} to {} of {}", first, first + count, shape.to_string()),
                     "");
  }
  Tensor result = *this;
  result.shape = Shape{count, shape.columns()};
  result.byte_offset += first * row_bytes(type, shape.columns());
  return result;
}

Tensor planned_tensor(const Shape& shape, DataType type) {
  Tensor tensor = {.shape = shape, .type = type};
  tensor.view.size = tensor.bytes();
  return tensor;
}

}  // namespace mulciber
