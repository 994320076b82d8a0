// The pipelines of a batch's programs, before any of these is built.
#include "models/decoding/sequence_batch.h"
#include "runtime/recorder.h"

namespace mulciber {

std::vector<PipelineKey> SequenceBatch::pipelines() const {
  const Capabilities& device = device_.capabilities();
  BatchTensors tensors = tensors_;
  if (!tensors.rows) {
    tensors.rows = Tensor{.shape = {layout_.longest, network_.embedding.table.shape.columns()}};
    tensors.rows->view.size = tensors.rows->bytes();
  }
  std::vector<PipelineKey> keys;
  for (const uint32_t length : kPassLengths) {
    if (length > layout_.longest) break;
    // Of embeddings of a host's, and with states for it, what comes on top of passes over tokens.
    for (const DecoderPass& pass :
         {DecoderPass{length, PassOutput::kCache}, DecoderPass{length, PassOutput::kChoice},
          DecoderPass{length, PassOutput::kChoice, true, true},
          DecoderPass{.length = length, .mixed = network_.sees && shape_.rows == 1}}) {
      ProgramBuilder builder(device, "plan");
      build_decoder_pass(builder, network_, layout_, tensors, pass);
      for (const Node& node : builder.nodes()) keys.push_back(pipeline_key(node, device));
    }
  }
  return keys;
}

}  // namespace mulciber
