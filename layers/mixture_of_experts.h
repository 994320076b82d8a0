// The mixture-of-experts feed-forward layer: a router sends each token to a few of many
// feed-forward networks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "layers/feed_forward.h"
#include "ops/experts.h"
#include "ops/routing.h"

namespace mulciber {

/// p = softmax(x Wr^T + br); the `experts_per_token` experts of largest p, whose results are added
/// up, each times
///   p (normalize false: the switch layer with experts_per_token = 1, Fedus et al. 2021,
///   arXiv:2101.03961), or p over the sum of those chosen (normalize true: top-2 of GShard,
///   arXiv:2006.16668; Mixtral, arXiv:2401.04088).
/// No token is dropped: experts have no capacity. Used between attentions by Liu et al. 2018,
/// arXiv:1801.10198.
struct MixtureOfExperts {
  Linear router;  // (experts, D)
  /// rules_words(), on the device: what top_k reads of token rules, of which there are none.
  Tensor rules;
  Tensor up, down;  // (experts, H, D) or gated (experts, 2 H, D); (experts, D, H)
  std::optional<Tensor> up_bias, down_bias;  // (experts * H or 2 H), (experts * D) f32
  Activation activation = Activation::kRelu;
  bool gated = false;
  float limit = 0;  // ExpertOptions::limit
  uint32_t experts_per_token = 2;
  bool normalize = true;
  /// Another choice of experts and gates, instead of experts_per_token and normalize. Its bias is a
  /// weight.
  std::optional<RouteOptions> choice = {};
  /// A network that every token goes through, whose result is added: Dai et al. 2024,
  /// arXiv:2401.06066.
  std::optional<FeedForward> shared = {};
  std::optional<Linear> shared_gate = {};  // (1, D): that result is multiplied by its sigmoid

  /// Adapters of experts, each expert's own; shapes: A (experts, parts * count, K), B (experts, N,
  /// parts * count).
  std::optional<LowRank> up_low_rank = {}, down_low_rank = {};

  static std::vector<uint32_t> rules_words();

  /// Tensors that tell where tokens went, for whoever keeps them (ProgramBuilder::keep).
  struct Routing {
    Tensor logits;  // (tokens, experts) f32
    Tensor routes;  // (tokens, experts_per_token, 2) u32: bits of log p, expert
  };
  /// x: (..., D) f32 or f16; result: the same shape and type. Throws ShapeError naming the layer.
  Tensor operator()(ProgramBuilder& builder, const Tensor& x, Routing* routing = nullptr,
                    const AdapterScales* adapters = nullptr) const;

 private:
  /// The product with `weight`, of options, and what its adapters add.
  Tensor product(ProgramBuilder& builder, const Tensor& x, const Tensor& weight,
                 const std::optional<LowRank>& low_rank, const Tensor& routes,
                 const ExpertOptions& options, const AdapterScales* adapters) const;
};

/// What became of a batch.
struct ExpertLoad {
  std::vector<uint64_t> tokens;          // routes that led to each expert
  std::vector<double> mean_probability;  // of each expert, over the tokens
  /// experts * sum of (share of the routes) * (mean probability): 1 where both are even, up to the
  /// number of experts. Source: Fedus et al. 2021, equation 4.
  double balance = 0;
};
/// Of MixtureOfExperts::Routing's values on the host. Throws ShapeError where they do not belong
/// together.
ExpertLoad expert_load(std::span<const float> logits, std::span<const uint32_t> routes,
                       uint32_t experts, uint32_t experts_per_token);

}  // namespace mulciber
