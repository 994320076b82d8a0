#include "models/generation/attention_pass.h"

#include <algorithm>
#include <utility>

#include "runtime/recorder.h"

namespace mulciber {

PaddedRows LayerMaps::head(uint32_t index) const {
  PaddedRows rows = first;
  rows.view.offset += index * bytes_a_head;
  return rows;
}

LayerMaps layer_maps(const Program& program, const Tensor& map, uint32_t queries, uint32_t keys) {
  const auto stride = static_cast<uint32_t>(map.shape[3]);
  return {.heads = static_cast<uint32_t>(map.shape[1]),
          .first = {.view = program.view(map), .rows = queries, .columns = keys, .stride = stride},
          .bytes_a_head = map.shape[2] * stride * sizeof(float)};
}

PaddedRows AttentionLayers::largest() const {
  PaddedRows all;
  for (const std::vector<LayerMaps>* layers : {&encoder, &decoder, &cross}) {
    for (const LayerMaps& layer : *layers) {
      all.rows = std::max(all.rows, layer.first.rows);
      all.stride = std::max(all.stride, layer.first.stride);
    }
  }
  return all;
}

void AttentionPasses::add(const ProgramBuilder& builder, const Capabilities& device) {
  for (const Node& node : builder.nodes()) keys.push_back(pipeline_key(node, device));
}

void AttentionPasses::add(const Tensor& map) {
  largest.rows = std::max(largest.rows, static_cast<uint32_t>(map.shape[2]));
  largest.stride = std::max(largest.stride, static_cast<uint32_t>(map.shape[3]));
}

std::vector<uint32_t> pass_lengths(uint32_t least, uint32_t most) {
  std::vector<uint32_t> lengths;
  for (uint32_t length = least; length < most; length *= 2) lengths.push_back(length);
  lengths.push_back(most);
  return lengths;
}

void AttentionPass::begin(Program& program, const BufferView& control, const ControlWords& words,
                          AttentionLayers layers) {
  program_ = &program;
  control_ = control;
  words_ = words.words();
  layers_ = std::move(layers);
  given_ = ended_ = false;
}

bool AttentionPass::next(Stage& stage) {
  if (given_) return false;
  given_ = true;
  stage.update(control_, words_);
  stage.program = program_;
  return true;
}

}  // namespace mulciber
