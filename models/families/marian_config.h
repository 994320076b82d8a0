// The configuration of an encoder-decoder Transformer as Marian trains it.
#pragma once

#include "models/config.h"

namespace mulciber {

/// An encoder-decoder Transformer as Marian trains it.
/// Source: Vaswani et al. 2017, arXiv:1706.03762; keys as in Hugging Face's MarianConfig.
struct MarianConfig {
  std::uint32_t d_model = 0;
  std::uint32_t encoder_layers = 0, decoder_layers = 0;
  std::uint32_t encoder_heads = 0, decoder_heads = 0;
  std::uint32_t encoder_ffn = 0, decoder_ffn = 0;
  std::uint32_t source_vocab = 0, target_vocab = 0;
  std::uint32_t context = 0;
  Activation activation = Activation::kNone;
  bool scale_embedding = false;      // embeddings times sqrt(d_model)
  bool shared_embeddings = true;     // encoder and decoder read one table
  bool tied_output = true;           // the output matrix is the decoder's embedding table
  bool normalize_before = false;     // layer norm before each sublayer instead of after the sum
  bool normalize_embedding = false;  // layer norm after the positions are added
  bool final_norm = false;           // layer norm after the last layer (pre-norm models)
  bool static_positions = true;      // sinusoids; otherwise the table is a weight
  double norm_epsilon = 1e-5;
  GenerationConfig generation;  // eos, pad and decoder_start are set

  std::uint32_t encoder_head_dim() const { return d_model / encoder_heads; }
  std::uint32_t decoder_head_dim() const { return d_model / decoder_heads; }
};

/// Throws ModelError naming file and key: something missing, not positive, beyond every known
/// model, heads that do not divide d_model, ids outside the vocabulary.
MarianConfig read_marian_config(const Checkpoint& checkpoint);
MarianConfig read_marian_config(const ConfigReader& config,
                                const ConfigReader* generation = nullptr);

}  // namespace mulciber
