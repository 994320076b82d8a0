// Programs of a decoder-only network over a batch of sequences: the nodes of a pass.
#pragma once

#include "models/generation/decoder_state.h"

namespace mulciber {

/// Lengths of a pass, so that few programs serve all prompts.
constexpr uint32_t kPassLengths[] = {1, 8, 16, 32, 64, 128, 256, 512};
/// The shortest of them that takes `tokens`, or else the longest within `longest` and `room`.
uint32_t pass_length(uint32_t tokens, uint32_t longest, uint32_t room);

enum class PassOutput {
  kCache,   // updates caches or states alone
  kChoice,  // also chooses the next token of every running row
  kTrace,   // keeps logits of every token instead, and what the trace asks for
};
struct DecoderPass {
  uint32_t length = 1;
  PassOutput result = PassOutput::kChoice;
  bool from_rows = false;    // ids are rows of BatchTensors::rows, not of the model's table
  bool states = false;       // hidden states before the output product are kept, of every token
  bool raw_logits = false;   // logits are kept as they are before penalties and biases too
  bool mixed = false;        // one row: embeddings are the table's, or those of BatchTensors::given
  bool shares_rows = false;  // CausalState::shares_rows
  auto operator<=>(const DecoderPass&) const = default;
};

/// Adapter scales as layers read them; none where there are no adapters.
std::optional<AdapterScales> adapter_scales(const BatchLayout& layout, const BatchTensors& tensors);

/// Tensors that a pass keeps. One that was not asked for has no shape.
struct PassTensors {
  Tensor logits;      // kChoice: from which tokens are chosen, (rows, vocabulary)
  Tensor states;      // (rows, length, D) f32
  Tensor raw_logits;  // (rows, vocabulary)
};

/// Adds nodes that feed `length` tokens of every row: their keys and values are appended to the
/// caches, and states advance by layout.state.fed tokens. The ids stand at layout.prompt in the
/// control buffer, a single one at layout.state.tokens. Returns the hidden states before the output
/// product, (rows, length, D).
Tensor decoder_tokens(ProgramBuilder& builder, const DecoderNetwork& network,
                      const BatchLayout& layout, const BatchTensors& tensors,
                      const DecoderPass& shape, Trace* trace = nullptr);

/// Adds a pass of `shape.length` tokens for every row. trace: for kTrace; logits are kept as
/// "output.logits", the hidden states before the output product as "output.normalized".
PassTensors build_decoder_pass(ProgramBuilder& builder, const DecoderNetwork& network,
                               const BatchLayout& layout, const BatchTensors& tensors,
                               const DecoderPass& shape, Trace* trace = nullptr);

}  // namespace mulciber
