// Mixtral: Mistral with a mixture of experts in place of the feed-forward network.
#include <algorithm>

#include "models/families/families.h"

namespace mulciber {
namespace {

constexpr DecoderNames mixtral_names() {
  DecoderNames names = kLlamaNames;
  names.router = "block_sparse_moe.gate";
  names.expert_gate = "block_sparse_moe.experts.{}.w1";
  names.expert_up = "block_sparse_moe.experts.{}.w3";
  names.expert_down = "block_sparse_moe.experts.{}.w2";
  return names;
}

DecoderConfig read_mixtral(const ConfigReader& config) {
  DecoderConfig decoder = kMistral.read(config);
  decoder.files.names = mixtral_names();
  DecoderExperts experts;
  experts.count = static_cast<uint32_t>(config.integer("num_local_experts", 1, kMostExperts));
  experts.per_token = static_cast<uint32_t>(config.integer_or(
      "num_experts_per_tok", 2, 1, std::min<int64_t>(experts.count, kMostExpertsPerToken)));
  decoder.feed_forward.experts = experts;
  return decoder;
}

}  // namespace

constinit const DecoderFamily kMixtral = {.model_type = "mixtral",
                                          .read = read_mixtral,
                                          .gguf = GgufFamily{.architecture = "llama",
                                                             .only_with = "expert_count",
                                                             .activation = "silu",
                                                             .pairs = RotaryPairs::kNeighbours},
                                          .end_pieces = {}};

}  // namespace mulciber
