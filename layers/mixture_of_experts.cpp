#include "layers/mixture_of_experts.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "mulciber/error.h"
#include "ops/elementwise.h"
#include "ops/search.h"

namespace mulciber {

namespace {

/// Token rules of top_k that allow every expert.
struct NoRules {
  ControlLayout layout;
  TokenRules rules = {layout.add_list(0), layout.add<uint32_t>(1),
                      layout.add<shader::PositionRules>(1)};
};

}  // namespace

std::vector<uint32_t> MixtureOfExperts::rules_words() {
  const NoRules none;
  ControlWords words(none.layout.words());
  words.set(none.rules.by_position, 0, {.last = {0xffffffff, 0}, .first = {0xffffffff, 0}});
  return words.words();
}

Tensor MixtureOfExperts::product(ProgramBuilder& builder, const Tensor& x, const Tensor& weight,
                                 const std::optional<LowRank>& low_rank, const Tensor& routes,
                                 const ExpertOptions& options,
                                 const AdapterScales* adapters) const {
  if (!low_rank || !adapters) return expert_matmul(builder, x, weight, routes, options);
  // Adapters change the product: activation and gates follow the sum.
  ExpertOptions plain = options;
  plain.activation = Activation::kNone;
  plain.gated = false;
  plain.limit = 0;
  const Tensor y = expert_matmul(builder, x, weight, routes, plain);
  const auto scope = builder.scope("lora");
  // Each route counts as a token with one expert, so its narrow vector is not summed with others.
  const uint64_t tokens = routes.shape[0], chosen = routes.shape[1];
  const Tensor narrow =
      options.combine ? expert_matmul(builder, x.reshaped({tokens * chosen, x.shape.columns()}),
                                      low_rank->down, routes.reshaped({tokens * chosen, 1, 2}))
                      : expert_matmul(builder, x, low_rank->down, routes);
  const Tensor scaled = scale_narrow(builder, narrow, *low_rank, *adapters);
  const uint64_t width = low_rank->up.shape.columns();
  Tensor change;
  if (options.combine) {
    change = expert_matmul(builder, scaled.reshaped({tokens, chosen, width}), low_rank->up, routes,
                           {.combine = true, .normalize = options.normalize});
  } else {
    change = expert_matmul(builder, scaled.reshaped({tokens * chosen, width}), low_rank->up,
                           routes.reshaped({tokens * chosen, 1, 2}));
  }
  const Tensor sum = add(builder, y, change.reshaped(y.shape));
  if (options.gated) return gate_pairs(builder, sum, options.activation, options.limit);
  return options.activation == Activation::kNone ? sum : activate(builder, sum, options.activation);
}

Tensor MixtureOfExperts::operator()(ProgramBuilder& builder, const Tensor& x, Routing* routing,
                                    const AdapterScales* adapters) const {
  const uint64_t tokens = x.shape.rows(), columns = x.shape.columns();
  if (up.shape.rank() != 3 || experts_per_token == 0 || experts_per_token > up.shape[0]) {
    throw ShapeError(
        builder.path(),
        fmt::format("{} experts per token of {}", experts_per_token, up.shape.to_string()),
        "keep at least one, and no more than there are");
  }
  const Tensor rows = x.reshaped({tokens, columns});
  Routing made;
  {
    const auto scope = builder.scope("router");
    made.logits = router(builder, rows, adapters);
    if (made.logits.type != DataType::kF32)
      made.logits = convert(builder, made.logits, DataType::kF32);
    made.routes = choice ? route_experts(builder, made.logits, *choice)
                         : top_k(builder, made.logits, experts_per_token, rules, NoRules().rules);
  }
  Tensor hidden, y;
  {
    const auto scope = builder.scope("up");
    hidden = product(builder, rows, up, up_low_rank, made.routes,
                     {.activation = activation, .gated = gated, .limit = limit, .bias = up_bias},
                     adapters);
  }
  {
    const auto scope = builder.scope("down");
    y = product(builder, hidden, down, down_low_rank, made.routes,
                {.combine = true, .normalize = normalize && !choice, .bias = down_bias}, adapters);
  }
  if (shared) {
    const auto scope = builder.scope("shared");
    Tensor inner = shared->up(builder, rows, shared->activation, shared->gated, adapters);
    // Scaling the second product's input scales its result as well.
    if (shared_gate) inner = gate_rows(builder, inner, (*shared_gate)(builder, rows, adapters));
    shared->down.add_to(builder, inner, y, adapters);
  }
  if (routing) *routing = made;
  return y.reshaped(x.shape);
}

ExpertLoad expert_load(std::span<const float> logits, std::span<const uint32_t> routes,
                       uint32_t experts, uint32_t experts_per_token) {
  if (experts == 0 || experts_per_token == 0 || logits.size() % experts != 0 ||
      routes.size() != logits.size() / experts * experts_per_token * 2) {
    throw ShapeError("expert load",
                     fmt::format("{} logits and {} words of routes for {} experts, {} per token",
                                 logits.size(), routes.size(), experts, experts_per_token),
                     "give (tokens, experts) and (tokens, experts_per_token, 2)");
  }
  const size_t tokens = logits.size() / experts;
  ExpertLoad load{std::vector<uint64_t>(experts), std::vector<double>(experts), 0};
  for (size_t token = 0; token < tokens; ++token) {
    const auto row = logits.subspan(token * experts, experts);
    const double largest = *std::ranges::max_element(row);
    double sum = 0;
    for (float logit : row) sum += std::exp(logit - largest);
    for (uint32_t e = 0; e < experts; ++e)
      load.mean_probability[e] += std::exp(row[e] - largest) / sum / static_cast<double>(tokens);
    for (uint32_t slot = 0; slot < experts_per_token; ++slot) {
      const uint32_t expert = routes[(token * experts_per_token + slot) * 2 + 1];
      if (expert < experts) ++load.tokens[expert];
    }
  }
  for (uint32_t e = 0; e < experts && tokens > 0; ++e) {
    load.balance += experts * static_cast<double>(load.tokens[e]) /
                    static_cast<double>(tokens * experts_per_token) * load.mean_probability[e];
  }
  return load;
}

}  // namespace mulciber
