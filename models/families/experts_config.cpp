#include "models/families/experts_config.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace mulciber {

void read_qwen_experts(const ConfigReader& config, DecoderConfig& decoder) {
  const auto step =
      static_cast<uint32_t>(config.integer_or("decoder_sparse_step", 1, 1, kMostLayers));
  for (uint32_t i = 0; i < decoder.layers.size(); ++i)
    decoder.layers[i].dense = (i + 1) % step != 0;
  if (config.has("mlp_only_layers")) {
    for (const Json& layer : config.list("mlp_only_layers")) {
      if (!layer.is_number_unsigned() || layer.get<uint64_t>() >= decoder.layers.size())
        config.fail("mlp_only_layers", "holds " + printable(layer.dump()) + ", which is no layer");
      decoder.layers[layer.get<size_t>()].dense = true;
    }
  }
  DecoderFeedForward& feed_forward = decoder.feed_forward;
  feed_forward.dense_hidden = feed_forward.hidden;
  feed_forward.hidden = static_cast<uint32_t>(config.integer("moe_intermediate_size", 1, kWidest));
  DecoderExperts experts;
  const char* count = config.has("num_experts") ? "num_experts" : "num_local_experts";
  experts.count = static_cast<uint32_t>(config.integer(count, 1, kMostExperts));
  experts.per_token = static_cast<uint32_t>(config.integer(
      "num_experts_per_tok", 1, std::min<int64_t>(experts.count, kMostExpertsPerToken)));
  experts.normalized = config.boolean_or("norm_topk_prob", false);
  feed_forward.experts = experts;
}

}  // namespace mulciber
