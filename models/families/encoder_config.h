// An encoder-only Transformer in the words of the papers that describe the parts. A family's
// configuration is read into this description (models/families/encoder_family.h), and
// models/networks/text_encoder_network.h builds the network that it describes.
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

/// What the embedding adds for the place of a token.
enum class EncoderPositions {
  kNone,         // nothing: attention rotates
  kCounted,      // row i of a table for token i: Devlin et al. 2019, arXiv:1810.04805
  kSkipPadding,  // row pad + 1 + i, where i counts tokens that are no padding: Liu et al. 2019
                 // (RoBERTa), arXiv:1907.11692
};

/// What of a sequence's states stands for the whole of it.
enum class EncoderPooling { kFirst, kMean, kMeanSqrtLength, kWeightedMean, kMax, kLast };

struct EncoderEmbedding {
  uint32_t columns = 0;  // of the tables; a product makes them `width` wide where that is another
  EncoderPositions positions = EncoderPositions::kCounted;
  uint32_t position_rows = 0;  // of the table
  uint32_t types = 0;          // kinds of segments; 0: the embedding knows none
};

struct EncoderLayerConfig {
  uint32_t weights = 0;          // number of the weights it shares with others (ALBERT), or its own
  uint32_t window = 0;           // AttentionOptions::window; 0: all
  std::optional<uint32_t> rope;  // index into EncoderConfig::ropes
  bool attention_norm = true;    // ModernBERT's first layer has none
};

/// Scores of content with distance and of distance with content, beside those of content with
/// content: He et al. 2021, arXiv:2006.03654.
struct DisentangledConfig {
  uint32_t span = 0;          // distances from -span to span - 1 have a row in the table
  uint32_t buckets = 0;       // distances beyond half of it share rows, by logarithm; 0: none do
  uint32_t max_distance = 0;  // of those
  bool content_to_position = true, position_to_content = true;
  bool norm = false;  // the table is normalized

  /// The row for a query that stands `distance` after its key.
  uint32_t row_of(int32_t distance) const;
};

/// A classifier of whole sequences: pooled, [dense, activation, [norm,]] and the product that gives
/// a logit for each label.
struct EncoderHead {
  EncoderPooling pooling = EncoderPooling::kFirst;
  const char* dense = nullptr;  // its names, as in EncoderNames
  bool dense_in_stack = false;  // behind a prefix: it is the pooler of the bare model as well
  bool dense_bias = true, output_bias = true;
  Activation activation = Activation::kNone;
  const char* norm = nullptr;
  const char* output = "classifier";
};

/// What a checkpoint was trained to do beside giving states.
enum class EncoderTask {
  kNone,
  kClassify,  // sequences
  kAnswer,    // where an answer starts and ends in a passage: Rajpurkar 2016, arXiv:1606.05250
};

/// Names of a family's tensors, without ".weight" and ".bias"; those of a layer stand behind
/// `layer`, its number and a dot. nullptr: the family has none.
struct EncoderNames {
  std::span<const char* const> prefixes;  // any of these may stand before every name of the stack
  const char *words = nullptr, *positions = nullptr, *types = nullptr;
  const char *embedding_norm = nullptr, *project = nullptr;
  const char* relative_bias = nullptr;
  const char *distances = nullptr, *distances_norm = nullptr;  // of disentangled attention
  const char* layer = nullptr;
  const char* qkv = nullptr;  // in one matrix; or in three:
  const char *q = nullptr, *k = nullptr, *v = nullptr;
  const char *attention_out = nullptr, *attention_norm = nullptr;
  const char* gate_up =
      nullptr;  // what is activated, then what it gates, in one matrix; or in two:
  const char *gate = nullptr, *up = nullptr;
  const char *down = nullptr, *feed_forward_norm = nullptr;
  const char* final_norm = nullptr;
  const char* pooler = nullptr;  // of the bare model; checkpoints may lack it
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
  /// One bias for each head and bucket of distances, of all layers: Raffel et al. 2020,
  /// arXiv:1910.10683.
  std::optional<T5Buckets> relative_bias;
  std::optional<DisentangledConfig> disentangled;
  std::vector<RopeConfig> ropes;
  uint32_t hidden = 0;  // of the feed-forward networks
  Activation activation = Activation::kNone;
  bool gated = false, feed_forward_bias = true;
  std::vector<EncoderLayerConfig> layers;
  Activation pooler_activation = Activation::kTanh;
  EncoderHead head;
  EncoderTask task = EncoderTask::kNone;
  std::vector<std::string> labels;  // of kClassify
  bool several_labels = false;      // each has a probability of its own
  std::string lost_head;            // what is missing of a classifier's head that the file had once
  GenerationConfig generation;      // none of it is used

  uint32_t head_size() const { return width / heads; }
  uint32_t layer_weights() const;  // how many layers have weights of their own
};

/// Keys as in Hugging Face's BertConfig, which most families share: sizes, embedding, layers all
/// alike, task and labels; no names and no classifier. Throws ModelError naming file and key.
EncoderConfig read_bert_like(const ConfigReader& config);

/// `id2label` in the order of its ids, or names made of `num_labels`. Throws ModelError.
std::vector<std::string> read_labels(const ConfigReader& config);

/// `architectures` and the labels that go with them.
void read_encoder_task(const ConfigReader& config, EncoderConfig& encoder);

}  // namespace mulciber
