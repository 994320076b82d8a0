#include "models/generation/traced_pass.h"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/device.h"
#include "runtime/transfer.h"

namespace mulciber {
namespace {

void build(ProgramBuilder& builder, const DecoderNetwork& network, const BatchLayout& layout,
           const BatchTensors& tensors, uint32_t length, const TracedOutputs& kept, Trace& trace) {
  trace.hidden_states = kept.states;
  trace.attentions = kept.attentions;
  build_decoder_pass(builder, network, layout, tensors,
                     {.length = length,
                      .result = kept.logits ? PassOutput::kTrace : PassOutput::kCache,
                      .mixed = kept.mixed},
                     &trace);
}

}  // namespace

std::string probabilities_of(uint64_t layer) {
  return fmt::format("layers.{}.attention.probabilities", layer);
}

Trace plan_traced_pass(ProgramBuilder& builder, const DecoderNetwork& network, uint32_t rows,
                       uint32_t length, const TracedOutputs& kept, uint32_t room) {
  const BatchShape shape = {rows, std::max(length, room)};
  const BatchLayout layout = plan_batch(network, shape, length);
  Trace trace;
  build(builder, network, layout, batch_tensor_shapes(network, shape, layout), length, kept, trace);
  return trace;
}

TracedPass::TracedPass(Device& device, const DecoderNetwork& network, uint32_t rows,
                       uint32_t length, const TracedOutputs& kept, uint32_t room)
    : length_(length),
      state_(device, network, {rows, std::max(length, room)},
             plan_batch(network, {rows, std::max(length, room)}, length), {.given = kept.mixed}) {
  ProgramBuilder builder(device, "forward");
  build(builder, network, state_.layout(), state_.tensors(), length, kept, trace_);
  program_ = builder.build();
}

ControlWords TracedPass::words(std::span<const uint32_t> ids,
                               std::span<const float> adapters) const {
  const BatchLayout& layout = state_.layout();
  const uint32_t rows = state_.shape().rows;
  ControlWords words = state_.words();
  for (uint32_t row = 0; row < rows; ++row)
    set_adapters(words, state_.network(), layout, row, adapters);
  const auto given = static_cast<uint32_t>(ids.size() / rows);
  words.fill(layout.state.fed, given);
  for (uint32_t row = 0; row < rows; ++row)
    words.set(layout.fed_ids(row, length_).part(0, given),
              ids.subspan(uint64_t{row} * given, given));
  return words;
}

void TracedPass::run(std::span<const uint32_t> ids, std::span<const float> adapters) {
  upload(state_.device(), control(), words(ids, adapters).bytes());
  program_->run();
}

void TracedPass::run(std::span<const uint32_t> ids, std::span<const GivenRows> given) {
  const DecoderNetwork& network = state_.network();
  const GivenPart part = given_part(given, network.width(), 0, static_cast<uint32_t>(ids.size()),
                                    length_, state_.layout().own_rows(), 1 / network.stream_scale);
  state_.give(part.values);
  ControlWords words = this->words(ids);
  words.set(*state_.layout().given, part.numbers);
  upload(state_.device(), control(), words.bytes());
  program_->run();
}

std::vector<float> TracedPass::read(const std::string& name) {
  return download_as<float>(state_.device(), program_->view(trace_.at(name)));
}

const Tensor& TracedPass::map(uint64_t layer) const { return trace_.at(probabilities_of(layer)); }

std::vector<float> TracedPass::read_map(uint64_t layer) {
  const std::vector<float> wide = read(probabilities_of(layer));
  const uint32_t columns = state_.shape().context;
  std::vector<float> map;
  map.reserve(wide.size() / columns * length_);
  for (size_t row = 0; row < wide.size(); row += columns) {
    const auto begin = wide.begin() + static_cast<std::ptrdiff_t>(row);
    map.insert(map.end(), begin, begin + length_);
  }
  return map;
}

}  // namespace mulciber
