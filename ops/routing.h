// The choice of experts.
#pragma once

#include <optional>

#include "runtime/program.h"

namespace mulciber {

struct RouteOptions {
  uint32_t experts_per_token = 1;
  bool sigmoid = false;             // scores are sigmoids of the logits, else their softmax
  std::optional<Tensor> bias = {};  // (experts) f32, added to the scores that are chosen by alone
  /// The experts stand in groups of as many each, at most 32; those of the best `groups_used` are
  /// chosen from. What counts of a group: its best, or its two best added up.
  uint32_t groups = 1, groups_used = 1;
  bool two_best = false;
  bool normalize = false;  // gates of a token are divided by their sum
  float scale = 1;         // onto gates
};

/// Of each token the experts with the largest scores, the largest first, of equal ones the first;
/// their gates are the scores without the bias. logits: (tokens, experts) f32. Result: routes as
/// expert_matmul() takes them, whose gates are not to be normalized again. Throws ShapeError naming
/// the layer. Source: DeepSeek-AI 2024, arXiv:2405.04434 and arXiv:2412.19437, section 2.1.2.
Tensor route_experts(ProgramBuilder& builder, const Tensor& logits, const RouteOptions& options);

}  // namespace mulciber
