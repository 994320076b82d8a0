#include "models/vision/image_pass.h"

#include <utility>

#include <fmt/format.h>

#include "models/core/vector_cosines.h"
#include "ops/elementwise.h"

namespace mulciber {

Tensor image_output(ProgramBuilder& builder, const VisionTowerNetwork& network, ImageOutput output,
                    const Tensor& states) {
  switch (output) {
    case ImageOutput::kPooled: return network.pooled(builder, states);
    case ImageOutput::kMean: return network.mean(builder, states);
    case ImageOutput::kProjected: return network.projected(builder, states);
    case ImageOutput::kLogits: return network.logits(builder, states);
    case ImageOutput::kStates: break;
  }
  return states.type == DataType::kF32 ? states : convert(builder, states, DataType::kF32);
}

ImagePass::ImagePass(Device& device, const VisionTowerNetwork& network, const VisionTower& tower,
                     std::shared_ptr<const Tensor> first, const ImageStart& start)
    : grid_{start.size.height / tower.patch, start.size.width / tower.patch},
      first_tokens_(static_cast<uint32_t>(tower.first_tokens.size())),
      heads_(tower.heads),
      first_(std::move(first)),
      from_(start.from),
      words_(start.pixels) {
  pixels_ = device.memory().allocate(
      uint64_t{start.size.height} * start.size.width * sizeof(uint32_t), MemoryUsage::kActivations);
  Trace trace;
  trace.attentions = start.attention;
  ProgramBuilder builder(device, "see");
  const Tensor states = network.states(
      builder, pixels_.tensor({1, start.size.height, start.size.width}, DataType::kU32), *first_,
      start.normalization, &trace);
  const auto scope = builder.layer("output");
  vector_ = image_output(builder, network, start.output, states);
  if (start.normalized) vector_ = unit_length(builder, vector_);
  builder.keep(vector_);
  states_ = image_output(builder, network, ImageOutput::kStates, states);
  builder.keep(states_);
  for (uint32_t i = 0; start.attention && i < tower.layers; ++i)
    maps_.push_back(trace.at(fmt::format("layers.{}.self_attn.probabilities", i)));
  program_ = builder.build();
  copy_ = device.memory().allocate(vector_.bytes(), MemoryUsage::kReadback);
}

bool ImagePass::next(Stage& stage) {
  if (given_ == stages()) return false;
  const bool first = ++given_ == 1;
  if (first && from_) {
    stage.copies.push_back({*from_, pixels_.view()});
    return true;
  }
  if (!from_) stage.update(pixels_.view(), std::exchange(words_, {}));
  stage.program = &*program_;
  BufferView from = program_->view(vector_);
  from.size = vector_.bytes();
  stage.copies.push_back({from, copy_.view()});
  return true;
}

PaddedRows ImagePass::vector() const {
  const auto columns = static_cast<uint32_t>(vector_.shape.columns());
  return {program_->view(vector_), 1, columns, columns};
}

PaddedRows ImagePass::states() const {
  const auto columns = static_cast<uint32_t>(states_.shape.columns());
  return {program_->view(states_), tokens(), columns, columns};
}

PaddedRows ImagePass::map(uint32_t layer, uint32_t head, uint32_t token) const {
  BufferView view = program_->view(maps_[layer]);
  const uint64_t before = (uint64_t{head} * tokens() + token) * tokens() + first_tokens_;
  view.offset += before * sizeof(float);
  view.size = uint64_t{grid_.height} * grid_.width * sizeof(float);
  return {view, grid_.height, grid_.width, grid_.width};
}

std::vector<float> ImagePass::values() const {
  const auto* from = reinterpret_cast<const float*>(copy_.view().mapped);
  return {from, from + vector_.shape.elements()};
}

}  // namespace mulciber
