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
    const uint64_t row_bytes = network_.embedding.table.shape.columns() * sizeof(float);
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
    const uint32_t length = pass_length(kind.tokens, layout_.longest, shape_.context - held);
    const uint32_t fed = std::min(kind.tokens, length);
    left -= fed;
    held += fed;
    const bool chooses = left == 0 && request.max_new_tokens > 0;
    shapes.insert({length, chooses ? PassOutput::kChoice : PassOutput::kCache,
                   kind.rows.has_value(), request.states});
  }
  return shapes;
}

std::span<const uint32_t> SequenceBatch::adapter_scales(uint32_t row) const {
  if (!layout_.adapter_scales) return {};
  const uint32_t of_row = network_.adapter_scales();
  return words_.values({layout_.adapter_scales->word + row * of_row, of_row});
}

void SequenceBatch::use_adapters(uint32_t row, std::span<const float> scales) {
  const std::vector<uint32_t> before(adapter_scales(row).begin(), adapter_scales(row).end());
  set_adapters(words_, network_, layout_, row, scales);
  if (!std::ranges::equal(before, adapter_scales(row))) truncate(row, 0);
}

void SequenceBatch::require_free() const {
  if (in_task_)
    throw SettingError("TextGenerator", "has a GenerationTask under way",
                       "destroy the task first, or take TextGenerator::conversation()");
}

void SequenceBatch::need_rows() {
  if (tensors_.rows) return;
  const Shape shape = {layout_.longest, network_.embedding.table.shape.columns()};
  rows_ = device_.memory().allocate(shape.elements() * sizeof(float), MemoryUsage::kActivations);
  tensors_.rows = rows_.tensor(shape, DataType::kF32);
}

BufferView SequenceBatch::place(const DecoderPass& shape, Tensor PassTensors::*kept) {
  const Built& pass = built(shape);
  const Tensor& tensor = pass.kept.*kept;
  BufferView view = pass.program.view(tensor);
  view.size = tensor.bytes();
  return view;
}

}  // namespace mulciber
