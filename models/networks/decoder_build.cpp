#include "models/networks/decoder_build.h"

#include <algorithm>

namespace mulciber {

WeightNames DecoderBuild::in_layer(uint32_t layer, const char* part) const {
  if (!part) return {};
  return with_prefixes(names().prefixes, names().layer + std::to_string(layer) + "." + part);
}

WeightNames DecoderBuild::output() const {
  const bool own = !names().output_prefixes.empty();
  return with_prefixes(own ? names().output_prefixes : names().prefixes, names().output);
}

Tensor DecoderBuild::vector(const std::string& name, const WeightNames& sources,
                            const Shape& shape) const {
  return weights.tensor({name, WeightRole::kVector, shape, {WeightSource{sources, shape}}});
}

Linear DecoderBuild::linear(const std::string& name, const std::vector<LinearPart>& parts,
                            uint64_t columns, bool bias, bool interleaved) const {
  WeightSpec matrix = linear_matrix(name, parts, columns, interleaved, config.files.matrices);
  matrix.any_column_order = true;
  return linear(std::move(matrix),
                bias ? std::optional(linear_bias(name, parts, interleaved)) : std::nullopt);
}

Linear DecoderBuild::linear(WeightSpec matrix, std::optional<WeightSpec> bias) const {
  const std::string name = matrix.name;
  Linear result = weights.linear(std::move(matrix), std::move(bias));
  const auto in_integers = [](const Tensor& part) { return multiplies_integers(part.type); };
  result.integers = types.integer_products && !result.column_order &&
                    types.activations == DataType::kF32 && in_integers(result.weight) &&
                    std::ranges::all_of(result.more_segments, in_integers);
  result.low_rank = low_rank(name);
  return result;
}

std::optional<LowRank> DecoderBuild::low_rank(const std::string& weight) const {
  if (!types.adapters) return std::nullopt;
  const auto found = types.adapters->updates.find(weight);
  if (found == types.adapters->updates.end()) return std::nullopt;
  const AdapterUpdate& update = found->second;
  return LowRank{weights.beside(lora_down(weight), update.down, update.type),
                 weights.beside(lora_up(weight), update.up, update.type), update.first,
                 update.count};
}

}  // namespace mulciber
