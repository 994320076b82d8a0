// Programs of an encoder-decoder network: encoding, the decoding step, and whole passes with
// everything they compute kept for reading. Built once per shape, recorded once, replayed.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "layers/transformer.h"
#include "models/model.h"
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

/// Sequences of unequal lengths, padded to a rectangle.
struct PaddedIds {
  uint32_t rows = 0, length = 0;
  std::vector<uint32_t> ids;      // (rows, length)
  std::vector<uint32_t> lengths;  // (rows): real ids of each row; those behind are not attended to
};

/// A whole pass with given target ids.
struct ForwardRequest {
  PaddedIds source;
  PaddedIds target;  // lengths are not used: no token sees a later one
  HeadFactors head_factors;
  bool logits = false, hidden_states = false, attentions = false;
};

/// Outputs with the extents asked for (padding for the program's sake taken away), by name:
/// encoder_last_hidden_state, logits, {encoder,decoder}_hidden_states,
/// {encoder,decoder,cross}_attentions, shaped as Hugging Face transformers stacks them.
using ForwardResult = std::map<std::string, NamedArray>;

/// Not thread-safe. Must not outlive the device or the network's weights.
class EncoderDecoder {
 public:
  /// memory_limit: bytes, 0 for what is available; checked before a batch is allocated.
  EncoderDecoder(Device& device, EncoderDecoderNetwork network, uint64_t memory_limit);
  ~EncoderDecoder();

  const EncoderDecoderNetwork& network() const { return network_; }
  GenerationResult generate(const GenerationRequest& request, uint32_t pad);
  ForwardResult forward(const ForwardRequest& request);
  /// As SequenceToSequenceModel has it.
  uint32_t batch_limit(uint32_t source_length, const GenerationSettings& settings);

 private:
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
  struct Search;
  struct Pass;

  SearchShape search_shape(uint32_t items, uint32_t source_length,
                           const GenerationSettings& settings) const;
  uint64_t search_bytes(const SearchShape& shape) const;
  uint64_t widest_binding(const SearchShape& shape) const;
  Search& search(const SearchShape& shape);
  Pass& pass(const PassShape& shape);

  Device& device_;
  EncoderDecoderNetwork network_;
  uint64_t memory_limit_;
  // Most recently used first.
  std::list<std::unique_ptr<Search>> searches_;
  std::list<std::unique_ptr<Pass>> passes_;
};

}  // namespace mulciber
