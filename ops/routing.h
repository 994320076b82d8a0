// The choice of experts.
#pragma once

#include <optional>

#include "runtime/program.h"

namespace mulciber {

struct RouteOptions {
  uint32_t experts_per_token = 1;
  bool sigmoid = false;             // scores are sigmoids of the logits, else their softmax
  std::optional<Tensor> bias = {};  // (experts) f32, added to scores for the choice only
  /// Experts form groups of equal size, at most 32 groups; only experts of the best `groups_used`
  /// groups are chosen. A group counts by its best score, or by the sum of its two best.
  uint32_t groups = 1, groups_used = 1;
  bool two_best = false;
  bool normalize = false;  // divide a token's gates by their sum
  float scale = 1;         // factor of the gates
};

/// Chooses for each token the experts with the largest scores, sorted by score, then by index;
/// their gates are the scores without the bias. logits: (tokens, experts) f32. Result: routes for
/// expert_matmul(), which must not normalize the gates again. Throws ShapeError naming the layer.
/// Source: DeepSeek-AI 2024, arXiv:2405.04434 and arXiv:2412.19437, section 2.1.2.
Tensor route_experts(ProgramBuilder& builder, const Tensor& logits, const RouteOptions& options);

}  // namespace mulciber
