// An encoder-decoder Transformer in the words of the papers that describe the parts. A family's
// configuration is read into this description (models/families/encoder_decoder_family.h), and
// models/networks/transformer_network.h builds the network that it describes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "layers/attention_family.h"
#include "layers/embedding.h"
#include "layers/transformer.h"
#include "models/core/config.h"

namespace mulciber {

/// What the embedding adds for the place of a token.
enum class Seq2SeqPositions {
  kNone,       // nothing: a bias of the scores tells distances
  kSinusoids,  // computed: Vaswani et al. 2017, arXiv:1706.03762, section 3.5
  kLearned,    // a table of weights for each stack
};

struct Seq2SeqEmbedding {
  float scale = 1;     // onto the embedding of a token
  bool shared = true;  // encoder and decoder read one table
  Seq2SeqPositions positions = Seq2SeqPositions::kSinusoids;
  Wavelengths wavelengths = Wavelengths::kVaswani;  // of kSinusoids
  uint32_t first_position = 0;  // number of a text's first position: tables may begin before it
  /// transformers counts positions over tokens that are no padding. Behind the end of a text its
  /// states are then other ones, which nothing reads.
  bool skips_padding = false;
  bool norm = false;  // after the positions are added
};

struct Seq2SeqNorms {
  NormKind kind = NormKind::kLayer;  // kLayer, or kRms where the place is kBefore
  NormPlacement place = NormPlacement::kAfter;
  bool final_norm = false;  // after the last layer
  float epsilon = 1e-5f;
};

struct Seq2SeqAttention {
  std::optional<float> scale;  // onto q k^T; none: head_size^-0.5
  bool bias = true;            // of its products
  /// One bias for each head and bucket of distances, of all layers of a stack: Raffel et al. 2020,
  /// arXiv:1910.10683. What is looked at is `buckets` and `max_distance`: the encoder's buckets go
  /// both ways, the decoder's look back.
  std::optional<T5Buckets> relative_bias;
};

struct Seq2SeqFeedForward {
  Activation activation = Activation::kNone;
  bool gated = false;  // Shazeer 2020, arXiv:2002.05202
  bool bias = true;
};

struct Seq2SeqOutput {
  bool tied = true;  // the matrix is the decoder's embedding: Press and Wolf 2017, arXiv:1608.05859
  float multiplier = 1;  // onto the states that go into the product
};

struct Seq2SeqStack {
  uint32_t layers = 0, heads = 0, head_size = 0;
  uint32_t hidden = 0;  // of the feed-forward networks

  uint32_t head_columns() const { return heads * head_size; }
};

/// Names of one stack's tensors, without ".weight" and ".bias". Those of a layer stand behind
/// `layer`, its number and a dot. nullptr: the family has none.
struct Seq2SeqStackNames {
  const char* embedding = nullptr;  // where the stacks do not share one
  const char *positions = nullptr, *embedding_norm = nullptr, *final_norm = nullptr;
  const char* relative_bias = nullptr;
  const char* layer = nullptr;
  const char *q = nullptr, *k = nullptr, *v = nullptr, *out = nullptr, *attention_norm = nullptr;
  const char *cross_q = nullptr, *cross_k = nullptr, *cross_v = nullptr, *cross_out = nullptr;
  const char* cross_norm = nullptr;
  const char *gate = nullptr, *up = nullptr, *down = nullptr, *feed_forward_norm = nullptr;
};

struct Seq2SeqNames {
  std::span<const char* const> prefixes;  // any of these may stand before every name of a stack
  const char* shared = nullptr;           // the table of both stacks
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

/// A family's configuration. Throws ModelError naming file and key: something missing, out of
/// range, another family's, ids outside the vocabulary.
EncoderDecoderConfig read_encoder_decoder_config(const EncoderDecoderFamily& family,
                                                 const ConfigReader& config,
                                                 const ConfigReader* generation = nullptr);

/// Keys as in Hugging Face's BartConfig, which Marian and M2M-100 share: sizes, vocabulary,
/// context, activation, scale of the embedding, names, generation. decoder_start is set where the
/// files say it.
EncoderDecoderConfig read_bart_like(const ConfigReader& config, const ConfigReader* generation);

}  // namespace mulciber
