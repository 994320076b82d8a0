// Pipelines of programs, before any program is built.
#include "models/generation/sequence_batch.h"
#include "models/generation/sequence_slots.h"
#include "runtime/recorder.h"

namespace mulciber {

std::vector<PipelineKey> SequenceBatch::pipelines() const {
  const Capabilities& device = state_.device().capabilities();
  BatchTensors tensors = state_.tensors();
  if (!tensors.rows) {
    tensors.rows = planned_tensor({state_.layout().longest, state_.network().width()});
  }
  std::vector<PipelineKey> keys;
  for (const uint32_t length : kPassLengths) {
    if (length > state_.layout().longest) break;
    // The third pass adds the pipelines of a caller's embeddings and of kept states, the fourth
    // those of embeddings from CPU memory.
    for (const DecoderPass& pass :
         {DecoderPass{length, PassOutput::kCache}, DecoderPass{length, PassOutput::kChoice},
          DecoderPass{length, PassOutput::kChoice, true, true},
          DecoderPass{.length = length, .mixed = state_.network().sees && shape().rows == 1}}) {
      ProgramBuilder builder(device, "plan");
      build_decoder_pass(builder, state_.network(), state_.layout(), tensors, pass);
      for (const Node& node : builder.nodes()) keys.push_back(pipeline_key(node, device));
    }
  }
  return keys;
}

std::vector<PipelineKey> SequenceSlots::pipelines() const {
  const Capabilities& device = state_.device().capabilities();
  std::vector<PipelineKey> keys;
  const auto add = [&](const RowsPass& pass) {
    ProgramBuilder builder(device, "plan");
    add_rows_pass(builder, state_.network(), state_.layout(), state_.tensors(), pass);
    for (const Node& node : builder.nodes()) keys.push_back(pipeline_key(node, device));
  };
  for (const bool raw : {false, true}) {
    for (uint32_t count = 1; count <= shape_.slots; count = step_slots(count) + 1) {
      const RowsPass step = {0, step_slots(count), shape_.slots, {.length = 1, .raw_logits = raw}};
      add(step);
      if (!can_draft()) continue;
      RowsPass verifying = step;
      verifying.pass.shares_rows = true;
      add(verifying);
    }
    for (const uint32_t length : kPassLengths) {
      if (length > shape_.chunk) break;
      for (const PassOutput output : {PassOutput::kCache, PassOutput::kChoice})
        for (const bool mixed : {false, true})
          if (!mixed || state_.network().sees)
            add({0, 1, 1, {.length = length, .result = output, .raw_logits = raw, .mixed = mixed}});
    }
  }
  return keys;
}

}  // namespace mulciber
