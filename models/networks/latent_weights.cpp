#include "models/networks/latent_weights.h"

namespace mulciber {

void add_key_value_up(WeightTable& table, const DecoderConfig& config, const std::string& name,
                      const std::function<WeightNames(const char*)>& file) {
  const DecoderLatent& latent = *config.attention.latent;
  const DecoderNames& names = config.files.names;
  const uint64_t heads = config.attention.heads, rank = latent.rank, value = latent.value_size,
                 rest = config.attention.head_size - latent.rotated;
  const uint64_t all = heads * (rest + value);
  if (!names.key_value_up) {
    table.push_back(
        {name + "key_value_up.weight",
         WeightRole::kMatrix,
         {all, rank},
         {{with_ending(file(names.k), ".weight"), {heads, rest, rank}, SourceForm::kTransposed},
          {with_ending(file(names.v), ".weight"), {heads, value, rank}}}});
    return;
  }
  const WeightNames both = file(names.key_value_up);
  std::vector<LinearPart> parts;
  for (uint64_t row = 0; row < all; row += rest + value) parts.push_back({both, rest, all, row});
  for (uint64_t row = rest; row < all; row += rest + value)
    parts.push_back({both, value, all, row});
  add_linear(table, name + "key_value_up", parts, rank, false, false, config.files.matrices);
}

}  // namespace mulciber
