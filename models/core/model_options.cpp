#include "models/core/model_options.h"

#include <fmt/format.h>

#include "mulciber/error.h"

namespace mulciber {

DataType storage_type(KeyValueStorage storage) {
  switch (storage) {
    case KeyValueStorage::kF32: return DataType::kF32;
    case KeyValueStorage::kQ8_0: return DataType::kQ8_0;
    case KeyValueStorage::kF16: break;
  }
  return DataType::kF16;
}

DataType cache_type(const ModelOptions& options) {
  const DataType cache = options.cache.value_or(options.activations);
  if (options.activations == DataType::kF16 && cache != DataType::kF16)
    throw ModelError("keys and values",
                     fmt::format("in {} do not go with activations in 16 bits", name_of(cache)),
                     "keep both in f16, or leave activations in 32 bits");
  return cache;
}

}  // namespace mulciber
