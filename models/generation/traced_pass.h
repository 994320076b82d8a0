// A full pass of a decoder-only network over given tokens, with all requested tensors kept.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "layers/trace.h"
#include "models/generation/decoder_programs.h"
#include "runtime/program.h"

namespace mulciber {

/// The tensors that a TracedPass keeps.
struct TracedOutputs {
  bool logits = false, states = false, attentions = false;
  bool mixed = false;  // DecoderPass::mixed
};

/// Adds the nodes of a TracedPass with these arguments to a builder without a device. Returns where
/// its results would stand.
Trace plan_traced_pass(ProgramBuilder& builder, const DecoderNetwork& network, uint32_t rows,
                       uint32_t length, const TracedOutputs& kept, uint32_t room = 0);
/// Name of a layer's probabilities in such a trace.
std::string probabilities_of(uint64_t layer);

/// Has a KV cache of its own, beside the network's sequences.
class TracedPass {
 public:
  /// room: least tokens of the cache. Must not outlive the network.
  TracedPass(Device& device, const DecoderNetwork& network, uint32_t rows, uint32_t length,
             const TracedOutputs& kept, uint32_t room = 0);

  uint32_t length() const { return length_; }
  Program& program() { return *program_; }
  BufferView control() const { return state_.control(); }
  /// Contents of the control buffer before a pass. ids: row after row, all equally long, and at
  /// most as long as the pass: no token sees those behind it. adapters: scales of every row, as
  /// set_adapters() takes them.
  ControlWords words(std::span<const uint32_t> ids, std::span<const float> adapters = {}) const;
  void run(std::span<const uint32_t> ids, std::span<const float> adapters = {});
  /// Runs a pass of one row and TracedOutputs::mixed, with embeddings in place of some tokens'.
  void run(std::span<const uint32_t> ids, std::span<const GivenRows> given);

  /// Reads a tensor that the pass keeps: (rows, length, ...).
  std::vector<float> read(const std::string& name);
  /// Probabilities of a layer: (rows, heads, length, length).
  std::vector<float> read_map(uint64_t layer);
  /// The probabilities of a layer where they stand, with a column for each token of the cache.
  const Tensor& map(uint64_t layer) const;

 private:
  uint32_t length_;
  DecoderState state_;
  Trace trace_;
  std::optional<Program> program_;
};

}  // namespace mulciber
