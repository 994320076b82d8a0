// Cases of causal_convolution and selective_scan; conformance/op_cases.cpp declares them.
#include "conformance/ops/state_space_reference.h"

#include <cmath>

namespace mulciber::conformance {
namespace {

OpCase causal_convolution_case(const StateSpaceVariant& v) {
  const uint64_t channels = v.sizes.channels, taps = v.sizes.taps;
  OpCase c = state_space_case(v, causal_convolution,
                              normal_input({channels * (taps + 1)}, DataType::kF32));
  c.reference = [=](std::span<const CpuTensor> inputs, const Arithmetic&) {
    const StateSpacePlaces places(v);
    const std::vector<double>& weights = inputs[1].values;
    StateSpaceOutputs outputs(inputs);
    for (uint64_t row = 0; row < v.rows; ++row) {
      const uint64_t count = count_of(v, row), state_at = row * v.sizes.state_columns();
      const auto input = [&](uint64_t t, uint64_t channel) {
        return inputs[0].values[(row * v.length + t) * 2 * channels + channel];
      };
      for (uint64_t channel = 0; channel < channels; ++channel) {
        // The input `distance` tokens before token t of the row; 0 before the row's first token.
        const auto before = [&](uint64_t t, uint64_t distance) {
          if (distance <= t) return input(t - distance, channel);
          if (position_of(v, row) == 0) return 0.0;
          const uint64_t kept = taps - 1 - (distance - t);
          return inputs[2].values[state_at + kept * channels + channel];
        };
        for (uint64_t t = 0; t < v.length; ++t) {
          const uint64_t at = places.convolved + (row * v.length + t) * channels + channel;
          if (t >= count) {
            put(outputs.work, at, Bounded(0));
            continue;
          }
          Bounded sum = weights[channels * taps + channel];
          for (uint64_t i = 0; i < taps; ++i)
            sum = sum + Bounded(weights[channel * taps + i]) * Bounded(before(t, taps - 1 - i));
          put(outputs.work, at, activation_reference(sum, Activation::kSilu));
        }
        for (uint64_t kept = 0; count > 0 && kept + 1 < taps; ++kept)
          put(outputs.state, state_at + kept * channels + channel,
              Bounded(before(count, taps - 1 - kept)));
      }
    }
    return outputs.all();
  };
  return c;
}

/// log(1 + exp(x)) computed like in the shader; the bound includes the error of the series.
Bounded softplus(double x) {
  const Bounded e = exp(Bounded(-std::abs(x)));
  const Bounded s = e / (Bounded(2) + e), s2 = s * s;
  Bounded series = 0;
  for (const double divisor : {13.0, 11.0, 9.0, 7.0, 5.0, 3.0, 1.0})
    series = series * s2 + Bounded(1 / divisor, 0x1p-24 / divisor);
  const Bounded computed = Bounded(std::max(x, 0.0)) + Bounded(2) * s * series;
  const double exact = std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
  return {exact, computed.error + std::abs(computed.value - exact)};
}

OpCase selective_scan_case(const StateSpaceVariant& v) {
  const uint64_t channels = v.sizes.channels, states = v.sizes.states;
  CaseInput weights = {{channels * (states + 1)},
                       DataType::kF32,
                       [=](std::vector<double>& values, std::mt19937& random) {
                         std::normal_distribution<double> normal;
                         for (size_t i = 0; i < values.size(); ++i) {
                           const double value = normal(random);
                           values[i] = i < channels * states ? -std::exp(value) : value;
                         }
                       },
                       {}};
  OpCase c = state_space_case(v, selective_scan, std::move(weights));
  c.reference = [=](std::span<const CpuTensor> inputs, const Arithmetic&) {
    const StateSpacePlaces places(v);
    const std::vector<double>&work = inputs[0].values, &weights = inputs[1].values;
    StateSpaceOutputs outputs(inputs);
    for (uint64_t row = 0; row < v.rows; ++row) {
      const uint64_t count = count_of(v, row);
      const uint64_t state_at = row * v.sizes.state_columns() + (v.sizes.taps - 1) * channels;
      for (uint64_t channel = 0; channel < channels; ++channel) {
        std::vector<Bounded> h(states);
        for (uint64_t n = 0; n < states && position_of(v, row) > 0; ++n)
          h[n] = inputs[2].values[state_at + n * channels + channel];
        for (uint64_t t = 0; t < v.length; ++t) {
          const uint64_t token = row * v.length + t;
          const uint64_t at = places.convolved + token * channels + channel;
          if (t >= count) {
            put(outputs.work, at, Bounded(0));
            continue;
          }
          const Bounded u = work[at];
          const Bounded step = softplus(work[places.steps + token * channels + channel]);
          const Bounded fed = step * u;
          const uint64_t pair = places.pairs + token * 2 * states;
          Bounded y = Bounded(weights[channels * states + channel]) * u;
          for (uint64_t n = 0; n < states; ++n) {
            h[n] = exp(step * Bounded(weights[channel * states + n])) * h[n] +
                   fed * Bounded(work[pair + n]);
            y = y + h[n] * Bounded(work[pair + states + n]);
          }
          const Bounded gate = work[token * 2 * channels + channels + channel];
          put(outputs.work, at, y * activation_reference(gate, Activation::kSilu));
        }
        for (uint64_t n = 0; count > 0 && n < states; ++n)
          put(outputs.state, state_at + n * channels + channel, h[n]);
      }
    }
    return outputs.all();
  };
  return c;
}

class StateSpaceCases : public OpCases {
 public:
  StateSpaceCases(const char* op, OpCase (*build)(const StateSpaceVariant&))
      : op_(op), build_(build) {}
  std::string shape_format() const override { return "rows,length,channels"; }
  std::vector<std::vector<uint64_t>> bench_shapes() const override {
    return {{1, 1, 1536}, {8, 1, 1536}, {1, 128, 1536}};
  }
  OpCase make(std::span<const uint64_t> shape, KernelTypes) const override {
    return build_(state_space_variant(op_, shape));
  }
  std::vector<OpCase> samples(KernelTypes) const override {
    std::vector<OpCase> cases;
    for (const StateSpaceVariant& variant : state_space_variants())
      cases.push_back(build_(variant));
    return cases;
  }

 private:
  const char* op_;
  OpCase (*build_)(const StateSpaceVariant&);
};

}  // namespace

const OpCases& causal_convolution_cases() {
  static const StateSpaceCases cases("causal_convolution", causal_convolution_case);
  return cases;
}

const OpCases& selective_scan_cases() {
  static const StateSpaceCases cases("selective_scan", selective_scan_case);
  return cases;
}

}  // namespace mulciber::conformance
