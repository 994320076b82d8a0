#include "layers/layer_cache.h"

namespace mulciber {
namespace {

Tensor without_memory(Shape shape, DataType type) {
  Tensor tensor = {.shape = shape, .type = type};
  tensor.view.size = tensor.bytes();
  return tensor;
}

}  // namespace

Tensor LayerCache::contexts(uint64_t sequences, uint64_t context) const {
  return without_memory({sequences, rows(context), columns}, type);
}

Tensor LayerCache::pages(uint64_t pages, uint64_t positions) const {
  return without_memory({pages, positions, columns}, type);
}

}  // namespace mulciber
