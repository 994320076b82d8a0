#include "models/networks/decoder_state_space.h"

namespace mulciber {
namespace {

/// (channels, taps), then (channels) biases.
Tensor state_space_convolution(const DecoderBuild& build, uint32_t layer) {
  const DecoderStateSpace& of = *build.config.state_space;
  const uint64_t E = of.channels, taps = of.taps;
  const WeightNames file = build.in_layer(layer, build.names().convolution);
  const Shape shape =
      build.config.files.flat_convolution ? Shape{E, taps} : Shape{E, uint64_t{1}, taps};
  return build.weights.tensor({layer_prefix(layer) + "convolution",
                               WeightRole::kVector,
                               {E * (taps + 1)},
                               {WeightSource{with_ending(file, ".weight"), shape},
                                of.convolution_bias ? WeightSource{with_ending(file, ".bias"), {E}}
                                                    : WeightSource{{}, {E}, SourceForm::kZeros}}});
}

/// A (channels, states), then D (channels).
Tensor state_space_scan(const DecoderBuild& build, uint32_t layer) {
  const DecoderStateSpace& of = *build.config.state_space;
  const uint64_t E = of.channels, N = of.states;
  return build.weights.tensor(
      {layer_prefix(layer) + "scan",
       WeightRole::kVector,
       {E * (N + 1)},
       {WeightSource{build.in_layer(layer, build.names().state_rates),
                     {E, N},
                     build.config.files.state_rates},
        WeightSource{build.in_layer(layer, build.names().state_skip), {E}}}});
}

SelectionNorms selection_norms(const DecoderBuild& build, uint32_t layer, float epsilon) {
  const DecoderStateSpace& of = *build.config.state_space;
  const auto ones = [&](const char* norm, const Shape& shape) {
    return build.weights.tensor({layer_prefix(layer) + norm,
                                 WeightRole::kVector,
                                 shape,
                                 {WeightSource{{}, shape, SourceForm::kOnes}}});
  };
  return {.step = ones("step_norm", {1, of.rank}),
          .pairs = ones("pairs_norm", {2, of.states}),
          .epsilon = epsilon};
}

}  // namespace

StateSpace decoder_state_space(const DecoderBuild& build, uint32_t layer) {
  const DecoderStateSpace& of = *build.config.state_space;
  const DecoderNames& names = build.names();
  const uint64_t D = build.config.width, E = of.channels, N = of.states, R = of.rank;
  const auto file = [&](const char* part) { return build.in_layer(layer, part); };
  // Files of every format hold these matrices in the network's form.
  const auto linear = [&](const char* part, const LinearPart& rows, uint64_t columns, bool bias) {
    const std::string name = layer_prefix(layer) + part;
    return build.linear(linear_matrix(name, {rows}, columns),
                        bias ? std::optional(linear_bias(name, {rows})) : std::nullopt);
  };
  const uint64_t selected = R + 2 * N;  // files have these rows in one matrix
  StateSpace made = {
      .sizes = {.channels = of.channels, .states = of.states, .taps = of.taps},
      .in = linear("in", {file(names.state_in), 2 * E}, D, of.bias),
      .convolution = state_space_convolution(build, layer),
      .step_down = linear("step_down", {file(names.state_select), R, selected, 0}, E, false),
      .step_up = linear("step_up", {file(names.state_step), E}, R, true),
      .pairs = linear("pairs", {file(names.state_select), 2 * N, selected, R}, E, false),
      .scan = state_space_scan(build, layer),
      .out = linear("out", {file(names.state_out), D}, E, of.bias)};
  if (of.norm_epsilon) made.norms = selection_norms(build, layer, *of.norm_epsilon);
  return made;
}

}  // namespace mulciber
