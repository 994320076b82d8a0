// What continuing texts needs of a model.
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

class PictureEmbedder;

/// A model that gives the probabilities of the token behind a text.
class LanguageModel {
 public:
  virtual ~LanguageModel() = default;

  virtual const DecoderNetwork& network() const = 0;
  /// Of one that sees pictures (models/generation/picture_embedder.h); nullptr of others.
  virtual PictureEmbedder* embeds_pictures() { return nullptr; }
  /// What loading it planned: weights, and the contexts that ModelOptions::sequences asked for.
  virtual const MemoryPrediction& memory_plan() const = 0;
  /// What tokens read of one another, of every layer and head: (layers, heads, length, length)
  /// probabilities after the softmax, before head factors; row i is of ids[i]. ids: 1 to
  /// network().context of them. adapters: as set_adapters() (models/generation/decoder_programs.h).
  virtual std::vector<float> attention(std::span<const uint32_t> ids,
                                       std::span<const float> adapters) = 0;
  /// The same pass, to be run in slices; the maps stay on the device. room: tokens of the longest
  /// text it is begun with again, 0: as many as `ids`. adapters: of the first text.
  virtual std::unique_ptr<TextAttention> start_attention(std::span<const uint32_t> ids,
                                                         uint32_t room,
                                                         std::span<const float> adapters) = 0;
  /// Of start_attention() with that room.
  virtual AttentionPasses plan_attention(uint32_t room) const = 0;
  /// Greedy. Inputs: input_ids (1, S). "output_ids" (1, n): the new ids alone. n_best must be 1.
  virtual NamedArrays search(const NamedArrays& inputs, const GenerationConfig& config,
                             uint32_t n_best) = 0;
};

}  // namespace mulciber
