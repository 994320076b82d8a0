#include "models/networks/adapter_table.h"

#include <algorithm>

#include <fmt/format.h>

#include "models/networks/decoder_network.h"

namespace mulciber {

uint64_t RotatedRows::in_adapter(uint64_t row) const {
  const uint64_t within = row % head, half = rotated / 2;
  if (model == adapter || within >= rotated) return row;
  return row - within +
         (adapter == RotaryPairs::kNeighbours ? within % half * 2 + within / half
                                              : within % 2 * half + within / 2);
}

const WeightSpec* AdapterTable::find(const std::string& weight) const {
  const auto found = std::ranges::find(table, weight, &WeightSpec::name);
  return found == table.end() ? nullptr : &*found;
}

std::optional<AdapterTable> other_adapter_table(const DecoderConfig& config) {
  if (!config.other_files) return std::nullopt;
  const OtherDecoderFiles& other = *config.other_files;
  const DecoderAttention& attention = config.attention;
  const auto differs = [&](const RopeConfig& rope) { return rope.pairs != other.pairs; };
  const bool reordered = std::ranges::any_of(config.ropes, differs);
  // Their heads are cut and put together again, what rotates first.
  if (reordered && attention.latent) return std::nullopt;
  DecoderConfig as_other = config;
  as_other.files = other.files;
  AdapterTable result = {
      .table = decoder_weight_table(as_other), .rotated = {}, .architecture = other.architecture};
  if (!reordered) return result;
  for (size_t i = 0; i < config.layers.size(); ++i) {
    // Converters reorder the heads of every layer, also of those that do not rotate.
    const RopeConfig& rope = config.ropes[config.layers[i].rope.value_or(0)];
    result.rotated.emplace(fmt::format("layers.{}.qkv.weight", i),
                           RotatedRows{.rows = attention.query_columns() + attention.key_columns(),
                                       .head = attention.head_size,
                                       .rotated = rope.rotated,
                                       .model = rope.pairs,
                                       .adapter = other.pairs});
  }
  return result;
}

}  // namespace mulciber
