// The interface of models that continue texts.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "models/core/config.h"
#include "models/core/model.h"
#include "models/generation/text_attention.h"
#include "models/networks/decoder_network.h"
#include "mulciber/text_generator.h"

namespace mulciber {

class ImageEmbedder;

/// A language model: it gives the probabilities of the token behind a text.
class LanguageModel {
 public:
  virtual ~LanguageModel() = default;

  virtual const DecoderNetwork& network() const = 0;
  /// The embedder of a model that sees images (models/generation/image_embedder.h); nullptr for
  /// other models.
  virtual ImageEmbedder* embeds_images() { return nullptr; }
  /// Memory that was planned at loading: weights, and the contexts that ModelOptions::sequences
  /// asked for.
  virtual const MemoryPrediction& memory_plan() const = 0;
  /// Attention maps of every layer and head: (layers, heads, length, length) probabilities after
  /// the softmax, before head factors; row i belongs to ids[i]. ids: 1 to network().context of
  /// them. adapters: scales, as set_adapters() (models/generation/decoder_programs.h) takes them.
  virtual std::vector<float> attention(std::span<const uint32_t> ids,
                                       std::span<const float> adapters) = 0;
  /// Starts such a pass, to be run in slices; the maps stay on the device. room: tokens of the
  /// longest text with which the pass will be begun again, 0: as many as `ids`. adapters: scales of
  /// the first text.
  virtual std::unique_ptr<TextAttention> start_attention(std::span<const uint32_t> ids,
                                                         uint32_t room,
                                                         std::span<const float> adapters) = 0;
  /// Plans the passes of start_attention() with that room.
  virtual AttentionPasses plan_attention(uint32_t room) const = 0;
  /// Greedy search. Inputs: input_ids (1, S). Output: "output_ids" (1, n), the new ids alone.
  /// n_best must be 1.
  virtual NamedArrays search(const NamedArrays& inputs, const GenerationConfig& config,
                             uint32_t n_best) = 0;
};

}  // namespace mulciber
