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

/// p = softmax(x Wr^T + br); the results of the `experts_per_token` experts with largest p are
/// added up, each times
///   p (normalize false: the switch layer with experts_per_token = 1, Fedus et al. 2021,
///   arXiv:2101.03961), or p over the sum of the chosen ones (normalize true: top-2 of GShard,
///   arXiv:2006.16668; Mixtral, arXiv:2401.04088).
/// No token is dropped: experts have no capacity. Used between attentions by Liu et al. 2018,
/// arXiv:1801.10198.
struct MixtureOfExperts {
  Linear router;  // (experts, D)
  /// rules_words() on the device: the empty token rules that top_k reads.
  Tensor rules;
  Tensor up, down;  // (experts, H, D) or gated (experts, 2 H, D); (experts, D, H)
  std::optional<Tensor> up_bias, down_bias;  // (experts * H or 2 H), (experts * D) f32
  Activation activation = Activation::kRelu;
  bool gated = false;
  float limit = 0;  // ExpertOptions::limit
  uint32_t experts_per_token = 2;
  bool normalize = true;
  /// Replaces experts_per_token and normalize by another choice of experts and gates. Its bias is a
  /// weight.
  std::optional<RouteOptions> choice = {};
  /// A network for every token, whose result is added: Dai et al. 2024, arXiv:2401.06066.
  std::optional<FeedForward> shared = {};
  std::optional<Linear> shared_gate = {};  // (1, D): its sigmoid scales the shared result

  /// Adapters of experts, separate for each expert; shapes: A (experts, parts * count, K), B
  /// (experts, N, parts * count).
  std::optional<LowRank> up_low_rank = {}, down_low_rank = {};

  static std::vector<uint32_t> rules_words();

  /// Tensors that show the routes of tokens, for a caller that keeps them (ProgramBuilder::keep).
  struct Routing {
    Tensor logits;  // (tokens, experts) f32
    Tensor routes;  // (tokens, experts_per_token, 2) u32: bits of log p, expert
  };
  /// x: (..., D) f32 or f16; result: x's shape and type. Throws ShapeError naming the layer.
  Tensor operator()(ProgramBuilder& builder, const Tensor& x, Routing* routing = nullptr,
                    const AdapterScales* adapters = nullptr) const;

 private:
  /// The product with `weight` under `options`, plus its adapters' results.
  Tensor product(ProgramBuilder& builder, const Tensor& x, const Tensor& weight,
                 const std::optional<LowRank>& low_rank, const Tensor& routes,
                 const ExpertOptions& options, const AdapterScales* adapters) const;
};

/// Routing statistics of a batch.
struct ExpertLoad {
  std::vector<uint64_t> tokens;          // routes to each expert
  std::vector<double> mean_probability;  // for each expert, over the tokens
  /// experts * sum of (share of the routes) * (mean probability): 1 for an even load, at most the
  /// number of experts.
  /// number of experts. Source: Fedus et al. 2021, equation 4.
  double balance = 0;
};
/// Computes the statistics from the values of MixtureOfExperts::Routing. Throws ShapeError where
/// they do not match each other.
ExpertLoad expert_load(std::span<const float> logits, std::span<const uint32_t> routes,
                       uint32_t experts, uint32_t experts_per_token);

}  // namespace mulciber
