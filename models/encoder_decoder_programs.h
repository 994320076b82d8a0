// Programs of an encoder-decoder network: how encoding, a decoding step and a whole pass are built,
// and the memory that stands between them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "layers/transformer.h"
#include "runtime/ops/search.h"
#include "runtime/program.h"

namespace mulciber {

struct EncoderDecoderNetwork {
  Encoder encoder;
  Decoder decoder;
  Linear output;  // (vocabulary, D)
  DataType activations = DataType::kF32;
  uint32_t source_vocabulary = 0, target_vocabulary = 0;
  uint32_t width = 0;          // D
  uint32_t widest_hidden = 0;  // of the feed-forward networks
  uint32_t max_positions = 0;

  uint32_t encoder_heads() const { return encoder.layers.front().self_attention.sizes.heads; }
  uint32_t decoder_heads() const { return decoder.layers.front().self_attention.sizes.heads; }
};

/// What the programs of a search are built for.
struct SearchShape {
  uint32_t batch, source_length, beams, capacity, banned_capacity;
  bool masked_output;  // the output's bias takes banned ids away, see output_bias
  auto operator<=>(const SearchShape&) const = default;
};
/// What the program of a whole pass is built for.
struct PassShape {
  uint32_t batch, source_length, target_length;
  bool logits, hidden_states, attentions;
  auto operator<=>(const PassShape&) const = default;
};

/// Where everything that both programs of a search, or a whole pass, read from control begins, in
/// words.
struct ControlLayout {
  uint32_t source = 0;                                             // (batch, source length) ids
  uint32_t lengths = 0;                                            // (batch)
  uint32_t encoder_masks = 0, decoder_masks = 0, cross_masks = 0;  // (layers, heads) floats
  uint32_t end = 0;
};
ControlLayout plan_control(const EncoderDecoderNetwork& network, uint32_t batch,
                           uint32_t source_length);

/// The two programs of a search, and what stands between them and between steps.
struct SearchPrograms {
  SearchShape shape;
  ControlLayout layout;
  BeamStateLayout beam;
  Buffer control, progress;
  /// Where scores are normalized over the ids that the rules leave: the network's output bias, with
  /// kBannedLogit at banned ids. Masking afterwards would leave their share in the sum.
  Buffer output_bias;
  std::vector<float> output_bias_values;
  std::vector<Buffer> memories;  // per decoder layer: (batch, source, heads * (d_k + d_v))
  std::vector<Buffer> caches;  // per decoder layer: (batch * beams, capacity, heads * (d_k + d_v))
  std::optional<Program> encode, step;

  SearchPrograms(Device& device, const EncoderDecoderNetwork& network, const SearchShape& wanted);
  void write_output_bias(Device& device, std::span<const uint32_t> banned);

 private:
  Program build_encode(Device& device, const EncoderDecoderNetwork& network,
                       const Tensor& control_tensor, std::span<const Tensor> memory_tensors) const;
  Program build_step(Device& device, const EncoderDecoderNetwork& network,
                     const Tensor& control_tensor, std::span<const Tensor> memory_tensors,
                     std::span<const Tensor> cache_tensors) const;
};

/// A whole pass: encoder and decoder in one program, everything asked for kept.
struct PassProgram {
  PassShape shape;
  ControlLayout layout;
  uint32_t target = 0, words = 0;  // word of the target ids; words in all
  Buffer control;
  Trace trace;
  std::optional<Program> program;

  PassProgram(Device& device, const EncoderDecoderNetwork& network, const PassShape& wanted);
};

}  // namespace mulciber
