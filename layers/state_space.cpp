#include "layers/state_space.h"

#include <utility>

#include "ops/norm.h"

namespace mulciber {

Tensor StateSpace::operator()(ProgramBuilder& builder, const Tensor& x,
                              const SequenceStates& states, const std::optional<Tensor>& add_to,
                              const AdapterScales* adapters) const {
  const StateSpaceWork work = state_space_work(builder, sizes, x.shape[0], x.shape[1]);
  {
    const auto scope = builder.scope("in");
    in.write_to(builder, x, work.projected, adapters);
  }
  causal_convolution(builder, sizes, work, convolution, states);
  {
    const auto scope = builder.scope("select");
    const Tensor step = step_down(builder, work.convolved, adapters);
    pairs.write_to(builder, work.convolved, work.pairs, adapters);
    if (norms) {
      norm_columns(builder, step, 0, norms->step, norms->epsilon, false);
      norm_columns(builder, work.pairs, 0, norms->pairs, norms->epsilon, false);
    }
    step_up.write_to(builder, step, work.steps, adapters);
  }
  selective_scan(builder, sizes, work, scan, states);
  const auto scope = builder.scope("out");
  if (!add_to) return out(builder, work.convolved, adapters);
  out.add_to(builder, work.convolved, *add_to, adapters);
  return *add_to;
}

SequenceMixer mixer_of(StateSpace layer) {
  SequenceMixer mixer = {.name = "state_space",
                         .cache = {.kind = LayerCache::Kind::kState,
                                   .columns = layer.sizes.state_columns(),
                                   .type = DataType::kF32},
                         .weights = layer.in.weight.type,
                         .apply = {}};
  mixer.apply = [layer = std::move(layer)](ProgramBuilder& builder, const MixerInput& input) {
    return layer(builder, input.x,
                 {.tensor = input.cache,
                  .control = input.control,
                  .positions = input.positions,
                  .counts = input.counts},
                 input.add_to, input.adapters);
  };
  return mixer;
}

}  // namespace mulciber
