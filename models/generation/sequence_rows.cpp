// The prefill passes of a prompt, over ids or over a caller's embeddings, and the adapter scales of
// its row.
#include <algorithm>

#include "models/generation/sequence_batch.h"
#include "models/generation/sequence_run.h"
#include "mulciber/error.h"

namespace mulciber {

SequenceBatch::Kind SequenceBatch::kind_of_tokens(const SequenceRequest& request,
                                                  size_t taken) const {
  const auto at = static_cast<uint32_t>(taken);
  auto end = static_cast<uint32_t>(request.prompts[0].size());
  for (const PromptRows& rows : request.embeddings) {
    if (rows.first > at) {
      end = std::min(end, rows.first);
      break;
    }
    if (at >= rows.first + rows.count) continue;
    const uint64_t row_bytes = state_.network().embedding.table.shape.columns() * sizeof(float);
    const uint32_t left = rows.first + rows.count - at;
    return {left, part_of(rows.from, (at - rows.first) * row_bytes, left * row_bytes)};
  }
  return {end - at, std::nullopt};
}

std::set<DecoderPass> SequenceBatch::passes(const SequenceRequest& request) const {
  std::set<DecoderPass> shapes;
  uint32_t held = length(0);
  auto left = static_cast<uint32_t>(request.prompts[0].size());
  while (left > 0) {
    const Kind kind = kind_of_tokens(request, request.prompts[0].size() - left);
    const uint32_t length =
        pass_length(kind.tokens, state_.layout().longest, shape().context - held);
    const uint32_t fed = std::min(kind.tokens, length);
    left -= fed;
    held += fed;
    const bool chooses = left == 0 && request.max_new_tokens > 0;
    shapes.insert({length, chooses ? PassOutput::kChoice : PassOutput::kCache,
                   kind.rows.has_value(), request.states});
  }
  return shapes;
}

void SequenceBatch::use_adapters(uint32_t row, std::span<const float> scales) {
  if (state_.use_adapters(row, scales)) truncate(row, 0);
}

void SequenceBatch::require_free() const {
  if (in_task_)
    throw SettingError("TextGenerator", "has a GenerationTask under way",
                       "destroy the task first, or take TextGenerator::conversation()");
}

BufferView SequenceBatch::output_of(const DecoderPass& shape, Tensor PassTensors::*kept) {
  const PassPrograms::Built& pass = built(shape);
  const Tensor& tensor = pass.kept.*kept;
  BufferView view = pass.program.view(tensor);
  view.size = tensor.bytes();
  return view;
}

}  // namespace mulciber
