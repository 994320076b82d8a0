// What sets one decoder-only model apart from another, read from its configuration.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/config.h"
#include "models/networks/rope_config.h"

namespace mulciber {

/// Names of a family's tensors in its files, without ".weight" and ".bias". Those of a layer stand
/// behind `layer`, its number and a dot. nullptr: the family has none.
struct DecoderNames {
  std::span<const char* const> prefixes;  // any of these may stand before every name
  const char* layer;
  const char* embedding;
  const char* positions;
  const char* final_norm;
  const char* output;
  const char* attention_norm;
  const char* qkv;  // queries, keys and values in one matrix, or nullptr: then in three
  const char *q, *k, *v;
  const char *q_norm, *k_norm;
  const char* attention_out;
  const char* after_attention_norm;
  const char* feed_forward_norm;
  const char *gate, *up, *down;
  const char* after_feed_forward_norm;
  std::span<const char* const> output_prefixes =
      {};  // of the output matrix, where it stands elsewhere
};
/// Hugging Face's names since Llama.
extern const DecoderNames kLlamaNames;

struct DecoderLayerConfig {
  uint32_t window = 0;  // a token sees that many, itself included; 0: all
  uint32_t rope = 0;    // index into DecoderConfig::ropes
};

struct DecoderConfig {
  DecoderNames names = kLlamaNames;
  uint32_t width = 0, hidden = 0, vocabulary = 0, max_positions = 0;
  uint32_t heads = 0, kv_heads = 0, head_size = 0;
  std::vector<DecoderLayerConfig> layers;
  /// Empty: positions are a table of weights.
  std::vector<RopeConfig> ropes;
  bool interleaved_pairs = false;  // rotary pairs are neighbours, not half a head apart
  Activation activation = Activation::kNone;
  bool gated = true;            // activation(x G^T) * (x U^T) instead of activation(x U^T)
  bool rms_norm = true;         // or layer norm, with a bias
  bool gains_less_one = false;  // the file holds every gain less 1
  bool norm_after = false;      // what a sublayer gives is normalized before it is added
  bool qk_norm = false;         // queries and keys are normalized, head by head
  bool qkv_bias = false, out_bias = false, feed_forward_bias = false;
  bool transposed = false;   // matrices are stored as (inputs, outputs)
  bool tied_output = false;  // the output matrix is the embedding
  float norm_epsilon = 1e-5f;
  float embedding_scale = 1, attention_scale = 1;
  GenerationConfig generation;

  uint32_t query_columns() const { return heads * head_size; }
  uint32_t key_columns() const { return kv_heads * head_size; }
};

/// Reads a family's configuration (models/families/families.h). Throws ModelError naming file and
/// key.
using ReadDecoder = DecoderConfig (*)(const ConfigReader& config);

/// Keys as in Hugging Face's LlamaConfig, which most families share; `layers` all alike, one rope.
/// Throws ModelError naming file and key: missing, out of range, or a value that would change the
/// numbers and is not supported.
DecoderConfig read_llama_like(const ConfigReader& config);

/// Throws ModelError when `key` is there and neither null, false nor 0: what it asks for is not
/// supported.
void require_absent(const ConfigReader& config, const char* key);

/// `layer_types` ("full_attention", "sliding_attention"); otherwise every layer slides that
/// `slides` says. Sets window (from `sliding_window`) of those layers.
void read_windows(const ConfigReader& config, DecoderConfig& decoder,
                  bool (*slides)(uint32_t layer, const ConfigReader&));

}  // namespace mulciber
