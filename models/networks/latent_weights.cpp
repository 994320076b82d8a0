#include "models/networks/latent_weights.h"

namespace mulciber {

void add_key_value_up(WeightTable& table, const DecoderConfig& config, const std::string& name,
                      const std::function<WeightNames(const char*)>& file) {
  const DecoderLatent& latent = *config.attention.latent;
  const DecoderNames& names = config.files.names;
  const uint64_t heads = config.attention.heads, rank = latent.rank, value = latent.value_size,
                 rest = config.attention.head_size - latent.rotated;
  if (names.key_value_up) {
    add_linear(table, name + "key_value_up", {{file(names.key_value_up), heads * (rest + value)}},
               rank, false, false, config.files.matrices);
    return;
  }
  const auto add = [&](const char* weight, const char* part, uint64_t rows, uint64_t columns) {
    table.push_back({name + weight,
                     WeightRole::kMatrix,
                     {heads * rows, columns},
                     {{with_ending(file(part), ".weight"), {heads, rows, columns}}}});
  };
  add("key_up.weight", names.k, rank, rest);
  add("value_up.weight", names.v, value, rank);
}

}  // namespace mulciber
