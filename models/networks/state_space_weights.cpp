#include "models/networks/state_space_weights.h"

namespace mulciber {

void add_state_space(WeightTable& table, const DecoderConfig& config, const std::string& name,
                     const std::function<WeightNames(const char*)>& file) {
  const DecoderStateSpace& of = *config.state_space;
  const DecoderNames& names = config.files.names;
  const uint64_t D = config.width, E = of.channels, N = of.states, taps = of.taps, R = of.rank;
  const uint64_t selected = R + 2 * N;  // files have these rows in one matrix
  add_linear(table, name + "in", {{file(names.state_in), 2 * E}}, D, of.bias);
  const Shape convolution =
      config.files.flat_convolution ? Shape{E, taps} : Shape{E, uint64_t{1}, taps};
  table.push_back(
      {name + "convolution",
       WeightRole::kVector,
       {E * (taps + 1)},
       {{with_ending(file(names.convolution), ".weight"), convolution},
        of.convolution_bias ? WeightSource{with_ending(file(names.convolution), ".bias"), {E}}
                            : WeightSource{{}, {E}, SourceForm::kZeros}}});
  add_linear(table, name + "step_down", {{file(names.state_select), R, selected, 0}}, E, false);
  add_linear(table, name + "step_up", {{file(names.state_step), E}}, R, true);
  add_linear(table, name + "pairs", {{file(names.state_select), 2 * N, selected, R}}, E, false);
  table.push_back({name + "scan",
                   WeightRole::kVector,
                   {E * (N + 1)},
                   {{file(names.state_rates), {E, N}, config.files.state_rates},
                    {file(names.state_skip), {E}}}});
  add_linear(table, name + "out", {{file(names.state_out), D}}, E, of.bias);
  if (!of.norm_epsilon) return;
  const auto ones = [&](const char* norm, Shape shape) {
    table.push_back({name + norm, WeightRole::kVector, shape, {{{}, shape, SourceForm::kOnes}}});
  };
  ones("step_norm", {uint64_t{1}, R});
  ones("pairs_norm", {uint64_t{2}, N});
}

}  // namespace mulciber
