#include "ops/routing.h"

#include <algorithm>

#include <fmt/format.h>

#include "mulciber/error.h"
#include "runtime/op.h"
#include "shaders/routing.h"

namespace mulciber {

Tensor route_experts(ProgramBuilder& builder, const Tensor& logits, const RouteOptions& options) {
  const auto refuse = [&](std::string problem, const char* remedy) {
    throw ShapeError(builder.path() + ": route_experts", std::move(problem), remedy);
  };
  if (logits.type != DataType::kF32 || logits.shape.rank() != 2 || logits.shape.elements() == 0)
    refuse(fmt::format("logits are {} {}", name_of(logits.type), logits.shape.to_string()),
           "pass (tokens, experts) f32");
  const uint64_t tokens = logits.shape[0], experts = logits.shape[1];
  if (options.groups == 0 || options.groups > ROUTE_MOST_GROUPS || experts % options.groups != 0 ||
      options.groups_used == 0 || options.groups_used > options.groups)
    refuse(
        fmt::format("{} of {} groups of {} experts", options.groups_used, options.groups, experts),
        "groups are of one size, 32 at most, and one at least is used");
  const uint64_t eligible = experts / options.groups * options.groups_used;
  if (options.experts_per_token == 0 || options.experts_per_token > eligible)
    refuse(fmt::format("{} experts per token of {}", options.experts_per_token, eligible),
           "keep at least one, and no more than the groups have");
  if (options.bias &&
      (options.bias->type != DataType::kF32 || options.bias->shape.elements() != experts))
    refuse(fmt::format("the bias is {} {}", name_of(options.bias->type),
                       options.bias->shape.to_string()),
           "pass (experts) f32");
  const Kernel& kernel = builder.select({Op::kRouteExperts, {DataType::kF32}, kAnyShape});
  const Tensor routes = builder.activation({tokens, options.experts_per_token, 2}, DataType::kU32);
  const Capabilities& device = builder.capabilities();
  if (std::max(logits.bytes(), routes.bytes()) > device.max_storage_range)
    refuse(fmt::format("{} tokens pass what one descriptor covers", tokens),
           "use fewer tokens at a time");
  Node node;
  node.kernel = &kernel;
  // Every binding needs a buffer; without a bias nothing reads the second one.
  node.buffers = {{logits, Access::kRead},
                  {options.bias ? *options.bias : logits, Access::kRead},
                  {routes, Access::kReadWrite}};
  node.set_params(shader::RouteParams{static_cast<uint32_t>(tokens), static_cast<uint32_t>(experts),
                                      options.experts_per_token, options.groups,
                                      options.groups_used, options.scale});
  node.constants = {{ROUTE_SIGMOID, options.sigmoid ? 1u : 0u},
                    {ROUTE_BIAS, options.bias ? 1u : 0u},
                    {ROUTE_TWO_BEST, options.two_best ? 1u : 0u},
                    {ROUTE_NORMALIZE, options.normalize ? 1u : 0u}};
  const uint64_t invocations = local_size(kernel, device);
  const uint64_t groups = (tokens + invocations - 1) / invocations;
  node.groups = {static_cast<uint32_t>(std::min<uint64_t>(groups, device.max_groups[0])), 1, 1};
  node.work.bytes = logits.bytes() + routes.bytes();
  node.work.flops = logits.shape.elements() * (4 + options.experts_per_token);
  builder.add(std::move(node));
  return routes;
}

}  // namespace mulciber
