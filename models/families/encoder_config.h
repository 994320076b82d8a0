// Description of an encoder-only Transformer, in the terms of the papers. A family's configuration
// is read into it (models/families/encoder_family.h), and models/networks/text_encoder_network.h
// builds the network.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "layers/attention_family.h"
#include "layers/transformer.h"
#include "models/core/config.h"
#include "models/core/rope_config.h"

namespace mulciber {

/// Position embeddings that are added to token embeddings.
enum class EncoderPositions {
  kNone,         // none: attention uses rotary embeddings
  kCounted,      // row i of a table for token i: Devlin et al. 2019, arXiv:1810.04805
  kSkipPadding,  // row pad + 1 + i, where i counts tokens other than padding: Liu et al. 2019
                 // (RoBERTa), arXiv:1907.11692
};

/// Pooling: how hidden states become one vector for the sequence.
enum class EncoderPooling { kFirst, kMean, kMeanSqrtLength, kWeightedMean, kMax, kLast };

struct EncoderEmbedding {
  uint32_t columns = 0;  // columns of the tables; a projection follows if `width` differs
  EncoderPositions positions = EncoderPositions::kCounted;
  uint32_t position_rows = 0;  // rows of the position table
  uint32_t types = 0;          // token types; 0: no type embeddings
};

struct EncoderLayerConfig {
  uint32_t weights = 0;          // index of its weights, which layers may share (ALBERT)
  uint32_t window = 0;           // AttentionOptions::window; 0: all
  std::optional<uint32_t> rope;  // index into EncoderConfig::ropes
  bool attention_norm = true;    // ModernBERT's first layer has none
};

/// Disentangled attention: scores of content with position and of position with content are added
/// to scores of content with content. Source: He et al. 2021, arXiv:2006.03654.
struct DisentangledConfig {
  uint32_t span = 0;          // the table has rows for distances -span to span - 1
  uint32_t buckets = 0;       // distances beyond half of it share rows logarithmically; 0: none do
  uint32_t max_distance = 0;  // distance of the last logarithmic row
  bool content_to_position = true, position_to_content = true;
  bool norm = false;  // the table is layer-normalized

  /// Row of the table for a query `distance` positions after the key.
  uint32_t row_of(int32_t distance) const;
};

/// A sequence classification head: pooling, [dense, activation, [norm,]] and the projection to a
/// logit for each label.
struct EncoderHead {
  EncoderPooling pooling = EncoderPooling::kFirst;
  const char* dense = nullptr;  // names of its tensors, see EncoderNames
  bool dense_in_stack = false;  // dense has a prefix: it is also the bare model's pooler
  bool dense_bias = true, output_bias = true;
  Activation activation = Activation::kNone;
  const char* norm = nullptr;
  const char* output = "classifier";
};

/// The task of a checkpoint's head.
enum class EncoderTask {
  kNone,
  kClassify,  // sequence classification
  kAnswer,    // start and end of an answer in a passage: Rajpurkar 2016, arXiv:1606.05250
};

/// Names of a family's tensors, without ".weight" and ".bias". A layer's tensors have the prefix
/// `layer`, its index and a dot. nullptr: the family has no such tensor.
struct EncoderNames {
  std::span<const char* const> prefixes;  // each file has one of these prefixes
  const char *words = nullptr, *positions = nullptr, *types = nullptr;
  const char *embedding_norm = nullptr, *project = nullptr;
  const char* relative_bias = nullptr;
  const char *distances = nullptr, *distances_norm = nullptr;  // for disentangled attention
  const char* layer = nullptr;
  const char* qkv = nullptr;  // one matrix, or q, k, v:
  const char *q = nullptr, *k = nullptr, *v = nullptr;
  const char *attention_out = nullptr, *attention_norm = nullptr;
  const char* gate_up = nullptr;  // one matrix, activated rows first, or gate, up:
  const char *gate = nullptr, *up = nullptr;
  const char *down = nullptr, *feed_forward_norm = nullptr;
  const char* final_norm = nullptr;
  const char* pooler = nullptr;  // the bare model's pooler; checkpoints may lack it
};

struct EncoderConfig {
  EncoderNames names;
  uint32_t width = 0, vocabulary = 0;
  uint32_t context = 0;  // tokens of the longest sequence
  uint32_t pad = 0;
  EncoderEmbedding embedding;
  NormPlacement norms = NormPlacement::kAfter;
  bool norm_bias = true;
  float norm_epsilon = 1e-12f;
  uint32_t heads = 0;
  bool attention_bias = true;
  /// One bias for each head and bucket of distances, shared by all layers: Raffel et al. 2020,
  /// arXiv:1910.10683.
  std::optional<T5Buckets> relative_bias;
  std::optional<DisentangledConfig> disentangled;
  std::vector<RopeConfig> ropes;
  uint32_t hidden = 0;  // size of the feed-forward networks
  Activation activation = Activation::kNone;
  bool gated = false, feed_forward_bias = true;
  std::vector<EncoderLayerConfig> layers;
  Activation pooler_activation = Activation::kTanh;
  EncoderHead head;
  EncoderTask task = EncoderTask::kNone;
  std::vector<std::string> labels;  // for kClassify
  bool several_labels = false;      // labels have independent probabilities
  std::string lost_head;            // parts of the classification head that the file lacks
  GenerationConfig generation;      // unused

  uint32_t head_size() const { return width / heads; }
  uint32_t layer_weights() const;  // number of distinct layer weights
};

/// Reads the keys of Hugging Face's BertConfig, which most families share: sizes, embedding, equal
/// layers, task and labels; but neither names nor head. Throws ModelError naming file and key.
EncoderConfig read_bert_like(const ConfigReader& config);

/// Reads `id2label` in the order of its ids, or makes names for `num_labels`. Throws ModelError.
std::vector<std::string> read_labels(const ConfigReader& config);

/// Reads the task from `architectures`, and the labels of a classifier.
void read_encoder_task(const ConfigReader& config, EncoderConfig& encoder);

}  // namespace mulciber
