#include "layers/layer_cache.h"

namespace mulciber {
Tensor LayerCache::contexts(uint64_t sequences, uint64_t context) const {
  return planned_tensor({sequences, rows(context), columns}, type);
}

Tensor LayerCache::pages(uint64_t pages, uint64_t positions) const {
  return planned_tensor({pages, positions, columns}, type);
}

}  // namespace mulciber
