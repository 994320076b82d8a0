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
    : device_(device),
      network_(network),
      length_(length),
      shape_{rows, std::max(length, room)},
      layout_(plan_batch(network, shape_, length)) {
  BatchTensors tensors = batch_tensor_shapes(network, shape_, layout_);
  const auto allocate = [&](Tensor& tensor) {
    buffers_.push_back(device.memory().allocate(tensor.bytes(), MemoryUsage::kActivations));
    tensor = buffers_.back().tensor(tensor.shape, tensor.type);
  };
  allocate(tensors.control);
  for (Tensor& cache : tensors.caches) allocate(cache);
  if (kept.mixed) {
    given_ = device.memory().allocate(tensors.given->bytes(), MemoryUsage::kActivations);
    tensors.given = given_.tensor(tensors.given->shape, DataType::kF32);
  }
  ProgramBuilder builder(device, "forward");
  build(builder, network, layout_, tensors, length, kept, trace_);
  program_ = builder.build();
}

ControlWords TracedPass::words(std::span<const uint32_t> ids,
                               std::span<const float> adapters) const {
  ControlWords words = initial_words(network_, layout_);
  for (uint32_t row = 0; row < shape_.rows; ++row)
    set_adapters(words, network_, layout_, row, adapters);
  const auto given = static_cast<uint32_t>(ids.size() / shape_.rows);
  words.fill(layout_.state.fed, given);
  for (uint32_t row = 0; row < shape_.rows; ++row)
    words.set(layout_.fed_ids(row, length_).part(0, given),
              ids.subspan(uint64_t{row} * given, given));
  return words;
}

void TracedPass::run(std::span<const uint32_t> ids, std::span<const float> adapters) {
  upload(device_, control(), words(ids, adapters).bytes());
  program_->run();
}

void TracedPass::run(std::span<const uint32_t> ids, std::span<const GivenRows> given) {
  const auto fed = static_cast<uint32_t>(ids.size());
  const GivenPart part = given_part(given, network_.width(), 0, fed, length_, layout_.own_rows(),
                                    1 / network_.stream_scale);
  BufferView rows = given_.view();
  rows.size = part.values.size() * sizeof(float);
  upload(device_, rows, std::as_bytes(std::span(part.values)));
  ControlWords words = this->words(ids);
  words.set(*layout_.given, part.numbers);
  upload(device_, control(), words.bytes());
  program_->run();
}

std::vector<float> TracedPass::read(const std::string& name) {
  return download_as<float>(device_, program_->view(trace_.at(name)));
}

const Tensor& TracedPass::map(uint64_t layer) const { return trace_.at(probabilities_of(layer)); }

std::vector<float> TracedPass::read_map(uint64_t layer) {
  const std::vector<float> wide = read(probabilities_of(layer));
  std::vector<float> map;
  map.reserve(wide.size() / shape_.context * length_);
  for (size_t row = 0; row < wide.size(); row += shape_.context) {
    const auto begin = wide.begin() + static_cast<std::ptrdiff_t>(row);
    map.insert(map.end(), begin, begin + length_);
  }
  return map;
}

}  // namespace mulciber
