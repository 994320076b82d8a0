#include "models/generation/not_finite.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace mulciber {
namespace {

// Tokens with which the first faulty layer is searched: a fault shows in the first of them, as a
// rule.
constexpr uint32_t kTracedTokens = 16;

}  // namespace

void refuse_logits(Device& device, const Weights* weights, const std::string& whose,
                   const std::function<std::string()>& first_layer) {
  refuse_numbers(device, weights, "logits " + whose, first_layer);
}

void refuse_numbers(Device& device, const Weights* weights, const std::string& where,
                    const std::function<std::string()>& first_layer) {
  if (weights != nullptr) {
    if (const auto name = weights->first_not_finite(device))
      throw LogitsError(
          where, fmt::format("are not finite: the weight `{}` holds NaN or infinity", *name),
          "download the file again, and keep matrices as they are in it: 16 bits hold "
          "no number above 65504");
  }
  const std::string layer = first_layer();
  if (!layer.empty())
    throw LogitsError(where,
                      fmt::format("are not finite: the output of {} holds NaN or infinity, and the "
                                  "weights do not",
                                  layer),
                      "keep activations in 32 bits, or use another checkpoint of the model");
  throw LogitsError(where, "are not finite: NaN or infinity is among them",
                    "use another checkpoint of the model");
}

std::string first_layer_not_finite(DecoderState& state, uint32_t row,
                                   std::span<const uint32_t> ids) {
  const BatchLayout& layout = state.layout();
  const uint32_t length =
      std::min({kTracedTokens, layout.longest, static_cast<uint32_t>(ids.size())});
  if (length == 0) return {};
  ControlWords words = state.words();
  words.fill(layout.state.positions, 0);
  words.fill(layout.state.fed, 0);
  words.set(layout.state.fed, row, length);
  words.set(layout.fed_ids(row, length), ids.first(length));

  Trace trace;
  trace.hidden_states = true;
  ProgramBuilder builder(state.device(), "trace");
  decoder_tokens(builder, state.network(), layout, state.tensors(), {.length = length}, &trace);
  Program program = builder.build();
  upload(state.device(), state.control(), words.bytes());
  program.run();
  const auto finite = [&](const std::string& name) {
    const Tensor& tensor = trace.at(name);
    const std::vector<float> values = download_as<float>(state.device(), program.view(tensor));
    const size_t of_row = length * tensor.shape.columns();
    return std::all_of(values.begin() + static_cast<std::ptrdiff_t>(row * of_row),
                       values.begin() + static_cast<std::ptrdiff_t>((row + 1) * of_row),
                       [](float value) { return std::isfinite(value); });
  };
  if (!finite("embedding.output")) return "the embedding";
  for (size_t i = 0; i < state.caches().size(); ++i) {
    if (!finite(fmt::format("layers.{}.output", i))) return fmt::format("layer {}", i);
  }
  return {};
}

std::string first_layer_not_finite(Device& device, const DecoderNetwork& network,
                                   std::span<const uint32_t> ids) {
  const BatchShape shape = {1, std::min(kTracedTokens, static_cast<uint32_t>(ids.size()))};
  if (shape.context == 0) return {};
  DecoderState state(device, network, shape, plan_batch(network, shape, shape.context), {});
  return first_layer_not_finite(state, 0, ids);
}

}  // namespace mulciber
