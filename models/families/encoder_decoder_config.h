// Description of an encoder-decoder Transformer, in the terms of the papers. A family's
// configuration is read into it (models/families/encoder_decoder_family.h), and
// models/networks/transformer_network.h builds the network.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "layers/attention_family.h"
#include "layers/embedding.h"
#include "layers/transformer.h"
#include "models/core/config.h"

namespace mulciber {

/// Position embeddings that are added to token embeddings.
enum class Seq2SeqPositions {
  kNone,       // none: scores have a relative bias
  kSinusoids,  // computed: Vaswani et al. 2017, arXiv:1706.03762, section 3.5
  kLearned,    // a learned table for each stack
};

struct Seq2SeqEmbedding {
  float scale = 1;     // factor of a token's embedding
  bool shared = true;  // encoder and decoder share the embedding table
  Seq2SeqPositions positions = Seq2SeqPositions::kSinusoids;
  Wavelengths wavelengths = Wavelengths::kVaswani;  // for kSinusoids
  uint32_t first_position = 0;  // index of a text's first position; tables may begin earlier
  /// transformers does not count padding in positions. Its hidden states then differ only in
  /// padding, which nothing reads.
  bool skips_padding = false;
  bool norm = false;  // layer norm after the positions are added
};

struct Seq2SeqNorms {
  NormKind kind = NormKind::kLayer;  // kLayer, or kRms with kBefore
  NormPlacement place = NormPlacement::kAfter;
  bool final_norm = false;  // a norm follows the last layer
  float epsilon = 1e-5f;
};

struct Seq2SeqAttention {
  std::optional<float> scale;  // factor of q k^T; none: head_size^-0.5
  bool bias = true;            // bias of its projections
  /// One bias for each head and bucket of distances, shared by all layers of a stack: Raffel et al.
  /// 2020, arXiv:1910.10683. Only `buckets` and `max_distance` are used: the encoder's buckets are
  /// bidirectional, the decoder's are not.
  std::optional<T5Buckets> relative_bias;
};

struct Seq2SeqFeedForward {
  Activation activation = Activation::kNone;
  bool gated = false;  // Shazeer 2020, arXiv:2002.05202
  bool bias = true;
};

struct Seq2SeqOutput {
  bool tied = true;  // the matrix is the decoder's embedding: Press and Wolf 2017, arXiv:1608.05859
  float multiplier = 1;  // factor of the hidden states before the output projection
};

struct Seq2SeqStack {
  uint32_t layers = 0, heads = 0, head_size = 0;
  uint32_t hidden = 0;  // size of the feed-forward networks

  uint32_t head_columns() const { return heads * head_size; }
};

/// Names of one stack's tensors, without ".weight" and ".bias". A layer's tensors have the prefix
/// `layer`, its index and a dot. nullptr: the family has no such tensor.
struct Seq2SeqStackNames {
  const char* embedding = nullptr;  // if the stacks do not share one
  const char *positions = nullptr, *embedding_norm = nullptr, *final_norm = nullptr;
  const char* relative_bias = nullptr;
  const char* layer = nullptr;
  const char *q = nullptr, *k = nullptr, *v = nullptr, *out = nullptr, *attention_norm = nullptr;
  const char *cross_q = nullptr, *cross_k = nullptr, *cross_v = nullptr, *cross_out = nullptr;
  const char* cross_norm = nullptr;
  const char *gate = nullptr, *up = nullptr, *down = nullptr, *feed_forward_norm = nullptr;
};

struct Seq2SeqNames {
  std::span<const char* const> prefixes;  // each file has one of these prefixes
  const char* shared = nullptr;           // embedding table that both stacks share
  Seq2SeqStackNames encoder, decoder;
};

struct EncoderDecoderConfig {
  Seq2SeqNames names;
  uint32_t width = 0, source_vocabulary = 0, target_vocabulary = 0;
  uint32_t context = 0;  // tokens of the longest source or target
  Seq2SeqStack encoder, decoder;
  Seq2SeqEmbedding embedding;
  Seq2SeqNorms norms;
  Seq2SeqAttention attention;
  Seq2SeqFeedForward feed_forward;
  Seq2SeqOutput output;
  GenerationConfig generation;  // eos, pad and decoder_start are set
};

struct EncoderDecoderFamily;

/// Reads a family's configuration. Throws ModelError naming file and key when a value is missing,
/// out of range or another family's, and for ids outside the vocabulary.
EncoderDecoderConfig read_encoder_decoder_config(const EncoderDecoderFamily& family,
                                                 const ConfigReader& config,
                                                 const ConfigReader* generation = nullptr);

/// Reads the keys of Hugging Face's BartConfig, which Marian and M2M-100 share: sizes, vocabulary,
/// context, activation, embedding scale, names and generation. decoder_start is set only if the
/// files have it.
EncoderDecoderConfig read_bart_like(const ConfigReader& config, const ConfigReader* generation);

}  // namespace mulciber
