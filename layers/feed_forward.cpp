#include "layers/feed_forward.h"

namespace mulciber {

Tensor FeedForward::operator()(ProgramBuilder& builder, const Operand& x,
                               const std::optional<Tensor>& add_to,
                               const AdapterScales* adapters) const {
  const Tensor hidden = [&] {
    const auto scope = builder.scope("fc1");
    return up(builder, x, activation, gated, adapters);  // (..., F)
  }();
  const auto scope = builder.scope("fc2");
  if (!add_to) return down(builder, hidden, adapters);
  down.add_to(builder, hidden, *add_to, adapters);
  return *add_to;
}

}  // namespace mulciber
