#include "models/decoding/attention_pass.h"

#include <utility>

namespace mulciber {

PaddedRows LayerMaps::head(uint32_t index) const {
  PaddedRows rows = first;
  rows.view.offset += index * bytes_a_head;
  return rows;
}

AttentionPass::AttentionPass(std::shared_ptr<PassProgram> program, ControlWords control,
                             const std::vector<NetworkOutput>& outputs)
    : program_(std::move(program)), control_(std::move(control)) {
  const std::pair<const char*, std::vector<LayerMaps>*> kinds[] = {{"encoder_attentions", &encoder},
                                                                   {"decoder_attentions", &decoder},
                                                                   {"cross_attentions", &cross}};
  for (const NetworkOutput& output : outputs) {
    for (const auto& [name, layers] : kinds) {
      if (output.name != name) continue;
      const Tensor& tensor = program_->trace.at(output.trace);  // (1, heads, queries, keys), f32
      const auto stride = static_cast<uint32_t>(tensor.shape[3]);
      layers->push_back({.heads = static_cast<uint32_t>(output.extents[1]),
                         .first = {.view = program_->program->view(tensor),
                                   .rows = static_cast<uint32_t>(output.extents[2]),
                                   .columns = static_cast<uint32_t>(output.extents[3]),
                                   .stride = stride},
                         .bytes_a_head = tensor.shape[2] * stride * sizeof(float)});
    }
  }
}

std::optional<Stage> AttentionPass::next() {
  if (given_) return std::nullopt;
  given_ = true;
  return Stage{.updates = {{program_->control.view(), control_.words()}},
               .program = &*program_->program};
}

}  // namespace mulciber
