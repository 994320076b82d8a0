// Cases and reference of route_experts; conformance/op_cases.cpp declares the cases.
#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "conformance/bounds.h"
#include "conformance/op_case.h"
#include "mulciber/error.h"
#include "ops/copy.h"
#include "ops/routing.h"

namespace mulciber::conformance {
namespace {

struct RouteVariant {
  uint64_t tokens = 1, experts = 1;
  uint32_t per_token = 1;
  bool sigmoid = false, bias = false, two_best = false, normalize = false;
  uint32_t groups = 1, groups_used = 1;
  float scale = 1;
};

std::vector<Bounded> route_scores(const RouteVariant& v, std::span<const double> logits) {
  std::vector<Bounded> scores;
  const double most = *std::ranges::max_element(logits);
  double total = 0, error = 0;
  for (const double logit : logits) {
    scores.push_back(v.sigmoid ? Bounded(1) / (Bounded(1) + exp(Bounded(-logit)))
                               : exp(Bounded(logit) - Bounded(most)));
    total += scores.back().value;
    error += scores.back().error;
  }
  if (v.sigmoid) return scores;
  const Bounded sum(total, error + sum_error(static_cast<double>(v.experts), total));
  for (Bounded& score : scores) score = score / sum;
  return scores;
}

void route_token(const RouteVariant& v, std::span<const double> logits,
                 std::span<const double> bias, CpuTensor& gates, CpuTensor& experts) {
  const std::vector<Bounded> scores = route_scores(v, logits);
  std::vector<double> choice(v.experts);
  for (uint64_t e = 0; e < v.experts; ++e)
    choice[e] = scores[e].value + (bias.empty() ? 0 : bias[e]);
  const uint64_t each = v.experts / v.groups;
  std::vector<std::pair<double, uint64_t>> groups, eligible;  // best first
  for (uint64_t g = 0; g < v.groups; ++g) {
    std::vector<double> own(choice.begin() + static_cast<std::ptrdiff_t>(g * each),
                            choice.begin() + static_cast<std::ptrdiff_t>((g + 1) * each));
    std::ranges::sort(own, std::greater());
    groups.emplace_back(-(v.two_best ? own[0] + own[1] : own[0]), g);
  }
  std::ranges::sort(groups);
  for (uint32_t n = 0; n < v.groups_used; ++n) {
    for (uint64_t i = 0; i < each; ++i) {
      const uint64_t expert = groups[n].second * each + i;
      eligible.emplace_back(-choice[expert], expert);
    }
  }
  std::ranges::sort(eligible);
  Bounded sum;
  for (uint32_t slot = 0; slot < v.per_token; ++slot) sum = sum + scores[eligible[slot].second];
  for (uint32_t slot = 0; slot < v.per_token; ++slot) {
    const Bounded factor = Bounded(v.scale) / (v.normalize ? sum : Bounded(1));
    append(gates, log(scores[eligible[slot].second] * factor));
    experts.values.push_back(static_cast<double>(eligible[slot].second));
  }
}

OpCase route_experts_case(const RouteVariant& v, KernelTypes types) {
  OpCase c;
  c.name = fmt::format("t{}_e{}_s{}", v.tokens, v.experts, v.per_token);
  if (v.sigmoid) c.name += ".sigmoid";
  if (v.bias) c.name += ".bias";
  if (v.groups > 1) c.name += fmt::format(".groups_{}_of_{}", v.groups_used, v.groups);
  if (v.two_best) c.name += ".two_best";
  if (v.normalize) c.name += ".normalized";
  c.types = types;
  c.degenerate = v.experts == 1;
  c.must_pass = v.groups > 1;
  c.inputs = {normal_input({v.tokens, v.experts}, DataType::kF32)};
  if (v.bias) c.inputs.push_back(normal_input({v.experts}, DataType::kF32, 0.3));
  c.build = [=](ProgramBuilder& builder, std::span<const Tensor> inputs) {
    RouteOptions options = {.experts_per_token = v.per_token,
                            .sigmoid = v.sigmoid,
                            .groups = v.groups,
                            .groups_used = v.groups_used,
                            .two_best = v.two_best,
                            .normalize = v.normalize,
                            .scale = v.scale};
    if (v.bias) options.bias = inputs[1];
    const Tensor routes = route_experts(builder, inputs[0], options);
    const Shape shape{v.tokens * v.per_token, 1};
    const Tensor gates = builder.activation(shape, DataType::kF32),
                 experts = builder.activation(shape, DataType::kU32);
    const Tensor pairs = routes.reshaped({v.tokens * v.per_token, 2});
    copy_columns(builder, pairs, gates, {.columns = 1});
    copy_columns(builder, pairs, experts, {.first_column = 1});
    return std::vector<Tensor>{gates, experts};
  };
  c.reference = [=](std::span<const CpuTensor> inputs, const Arithmetic&) {
    const Shape shape{v.tokens * v.per_token, 1};
    CpuTensor gates{shape, DataType::kF32, {}, {}}, experts{shape, DataType::kU32, {}, {}};
    for (uint64_t token = 0; token < v.tokens; ++token)
      route_token(v, std::span(inputs[0].values).subspan(token * v.experts, v.experts),
                  v.bias ? std::span<const double>(inputs[1].values) : std::span<const double>(),
                  gates, experts);
    return std::vector<CpuTensor>{gates, experts};
  };
  return c;
}

class RouteCases : public OpCases {
 public:
  std::string shape_format() const override { return "tokens,experts,experts_per_token"; }
  std::vector<std::vector<uint64_t>> bench_shapes() const override {
    return {{1, 64, 6}, {512, 256, 8}};
  }
  OpCase make(std::span<const uint64_t> shape, KernelTypes types) const override {
    if (shape.size() != 3 || std::ranges::count(shape, uint64_t{0}) > 0 || shape[2] > shape[1])
      throw ShapeError("route_experts",
                       "a shape is three positive numbers, no more chosen than there are",
                       "give tokens,experts,experts_per_token such as 512,256,8");
    return route_experts_case(
        {.tokens = shape[0], .experts = shape[1], .per_token = static_cast<uint32_t>(shape[2])},
        types);
  }
  std::vector<OpCase> samples(KernelTypes types) const override {
    return {
        route_experts_case({.tokens = 1, .experts = 1}, types),
        route_experts_case({.tokens = 37, .experts = 7, .per_token = 3, .scale = 1.5f}, types),
        route_experts_case({.tokens = 5, .experts = 64, .per_token = 6, .normalize = true}, types),
        route_experts_case({.tokens = 33,
                            .experts = 24,
                            .per_token = 4,
                            .groups = 6,
                            .groups_used = 2,
                            .scale = 16},
                           types),
        route_experts_case({.tokens = 70,
                            .experts = 40,
                            .per_token = 8,
                            .sigmoid = true,
                            .bias = true,
                            .two_best = true,
                            .normalize = true,
                            .groups = 8,
                            .groups_used = 3,
                            .scale = 2.5f},
                           types)};
  }
};

}  // namespace

const OpCases& route_experts_cases() {
  static const RouteCases cases;
  return cases;
}

}  // namespace mulciber::conformance
