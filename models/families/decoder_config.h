// Description of a decoder-only network, in the terms of the papers. A family's configuration is
// read into it (models/families/decoder_family.h), and models/networks/decoder_network.h builds the
// network or names the part that is not supported.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "checkpoints/weights.h"
#include "layers/norm.h"
#include "models/core/config.h"
#include "models/core/rope_config.h"

namespace mulciber {

/// Position of a sublayer's norms.
enum class NormPlace {
  kBefore,  // pre-norm, on the sublayer's input: Xiong et al. 2020, arXiv:2002.04745
  kAfter,   // norm of its output, before the residual addition: OLMo 2, arXiv:2501.00656
  kBoth,    // sandwich: Ding et al. 2021, arXiv:2105.13290; Gemma 2, arXiv:2408.00118
};

struct DecoderNorms {
  NormKind kind = NormKind::kRms;  // kLayer or kRms
  NormPlace place = NormPlace::kBefore;
  bool gains = true;  // false: layer norms without weights: OLMo, arXiv:2402.00838
  bool bias = false;  // bias of a layer norm: Cohere's has none
  float epsilon = 1e-5f;
};

/// How the sublayers of a layer are added to the residual stream x. A is attention, F the
/// feed-forward network, each with its norm.
enum class Residual {
  kSequential,          // y = x + A(x), then y + F(y): Radford et al. 2019
  kParallel,            // x + A(x) + F(x): Black et al. 2022 (GPT-NeoX), arXiv:2204.06745
  kParallelSharedNorm,  // kParallel with one norm for both: Wang and Komatsuzaki 2021 (GPT-J)
};

/// QK-norm, before the rotary embedding, and its gains. Source: Dehghani et al. 2023,
/// arXiv:2302.05442.
enum class QueryKeyNorm {
  kNone,
  kPerHead,   // each head by itself, shared gains: Qwen 3, Gemma 3
  kOwnGains,  // each head by itself, gains per head: Command R+
  kAllHeads,  // all heads together: OLMo 2
};

/// Multi-head latent attention (layers/causal_decoder.h): ranks of the latent vectors, and the size
/// of the rotated part of keys that heads share.
struct DecoderLatent {
  uint32_t query_rank = 0;  // 0: queries are projected directly
  uint32_t rank = 0;        // rank of the latent vector of keys and values
  uint32_t rotated = 0;     // elements of a head that rotate; the last ones in files
  uint32_t value_size = 0;
};

struct DecoderAttention {
  uint32_t heads = 0, kv_heads = 0, head_size = 0;  // kv_heads: Ainslie 2023, arXiv:2305.13245
  float scale = 1;                                  // factor of q k^T
  float soft_cap = 0;                               // on scores, 0: none: arXiv:2408.00118
  bool sinks = false;  // a logit per head in the softmax without a value: gpt-oss, arXiv:2508.10925
  float clip = 0;      // largest magnitude of queries, keys and values; 0: no limit: OLMo, DBRX
  std::optional<DecoderLatent> latent;  // kv_heads then equals heads
  QueryKeyNorm qk_norm = QueryKeyNorm::kNone;
  bool qkv_bias = false, out_bias = false;

  uint32_t query_columns() const { return heads * head_size; }
  uint32_t key_columns() const { return kv_heads * head_size; }
  /// Columns of attention's result, before the output projection.
  uint32_t value_columns() const { return heads * (latent ? latent->value_size : head_size); }
};

constexpr std::int64_t kMostExperts = 1024;
/// Limit of ops/search.h.
constexpr std::int64_t kMostExpertsPerToken = 64;

/// Routing that is more than a softmax (ops/routing.h).
struct DecoderRouting {
  bool sigmoid = false, bias = false, two_best = false;
  uint32_t groups = 1, groups_used = 1;
  float scale = 1;
};

/// A mixture of experts instead of one feed-forward network (layers/mixture_of_experts.h).
struct DecoderExperts {
  uint32_t count = 0, per_token = 0;
  bool normalized = true;  // the gates of the chosen experts are scaled to the sum 1
  std::optional<DecoderRouting> routing;
  /// Hidden size of the shared expert, which computes every token: Dai et al. 2024 (DeepSeekMoE),
  /// arXiv:2401.06066. 0: there is none.
  uint32_t shared_hidden = 0;
  bool router_bias = false;
  float limit = 0;           // ExpertOptions::limit
  bool shared_gate = false;  // the shared expert has a sigmoid gate: Qwen 2
};

/// Selective state-space layers instead of attention and feed-forward (layers/state_space.h).
struct DecoderStateSpace {
  uint32_t channels = 0, states = 0, taps = 0;
  uint32_t rank = 0;  // rank of the time step's projection
  bool bias = false;  // bias of the projections into and out of the layer
  bool convolution_bias = true;
  /// Epsilon of RMS norms without weights for the time step's vector, B and C; none: no such norms.
  /// Zuo et al. 2024 (Falcon Mamba), arXiv:2410.05355.
  std::optional<float> norm_epsilon;
};

enum class FeedForwardKind {
  kPlain,  // activation(x U^T) D^T: Vaswani et al. 2017, arXiv:1706.03762
  kGated,  // (activation(x G^T) * (x U^T)) D^T: Shazeer 2020, arXiv:2002.05202
};

struct DecoderFeedForward {
  FeedForwardKind kind = FeedForwardKind::kGated;
  uint32_t hidden = 0;        // size; in a mixture of experts, of one expert
  uint32_t dense_hidden = 0;  // size in layers without experts, in a network with experts
  Activation activation = Activation::kNone;
  bool bias = false;
  std::optional<DecoderExperts> experts;
};

struct DecoderEmbedding {
  float multiplier = 1;            // factor of a token's embedding
  bool learned_positions = false;  // a position table is added
};

struct DecoderOutput {
  bool tied = false;  // the matrix is the embedding table: Press and Wolf 2017, arXiv:1608.05859
  bool bias = false;
  float multiplier = 1;  // factor of the logits
  float soft_cap = 0;    // for logits, 0: none: Gemma 2
};

struct DecoderLayerConfig {
  uint32_t window = 0;  // tokens that a query attends to, its own included; 0: all
  /// Index into DecoderConfig::ropes. None: queries and keys are not rotated (Kazemnejad et al.
  /// 2023, arXiv:2305.19466).
  std::optional<uint32_t> rope = 0;
  bool dense = false;  // a plain feed-forward network beside layers with experts
};

/// Names of a family's tensors in its files, without ".weight" and ".bias". A layer's tensors have
/// the prefix `layer`, its index and a dot. nullptr: the family has no such tensor.
struct DecoderNames {
  std::span<const char* const> prefixes;  // each file has one of these prefixes
  const char* layer = nullptr;
  const char* embedding = nullptr;
  const char* positions = nullptr;
  const char* final_norm = nullptr;
  const char* output = nullptr;
  std::span<const char* const> output_prefixes = {};  // prefixes of `output`, if they differ
  const char* attention_norm = nullptr;
  const char* qkv = nullptr;  // queries, keys and values in one matrix, or q, k, v:
  const char *q = nullptr, *k = nullptr, *v = nullptr;
  const char *q_norm = nullptr, *k_norm = nullptr;
  // Latent attention, for queries: down-projection to the latent vector, norm, up-projection. Then
  // the same tensors for keys and values; the rows of the rotated keys follow in key_value_down.
  const char *query_down = nullptr, *query_norm = nullptr, *query_up = nullptr;
  const char *key_value_down = nullptr, *key_value_norm = nullptr, *key_value_up = nullptr;
  const char* attention_out = nullptr;
  const char* after_attention_norm = nullptr;
  const char* feed_forward_norm = nullptr;
  const char* gate_up = nullptr;  // gate and up in one matrix, gate first, or gate, up:
  const char *gate = nullptr, *up = nullptr;
  const char* down = nullptr;
  const char* router = nullptr;
  const char* router_choice = nullptr;  // DecoderRouting::bias, ending included
  const char* sinks = nullptr;
  /// Matrices of experts: one tensor for all experts, or one for each, with its index instead of
  /// {}. expert_gate_up: gate and up in one tensor with interleaved rows (or
  /// DecoderFiles::gates_above).
  const char* expert_gate_up = nullptr;
  const char *expert_gate = nullptr, *expert_up = nullptr, *expert_down = nullptr;
  const char *shared_gate = nullptr, *shared_up = nullptr, *shared_down = nullptr;
  const char* shared_router = nullptr;  // gate of DecoderExperts::shared_gate
  // State-space layers: input projection; projection to the time step's vector, B and C; projection
  // of the time step; output projection; convolution; A and D, endings included. Their norm is
  // `attention_norm`.
  const char *state_in = nullptr, *state_select = nullptr, *state_step = nullptr,
             *state_out = nullptr;
  const char *convolution = nullptr, *state_rates = nullptr, *state_skip = nullptr;
  const char* after_feed_forward_norm = nullptr;
};

constexpr const char* kNoPrefix[] = {""};
/// Names in Hugging Face's files of Llama and most later families.
constexpr DecoderNames kLlamaNames = {.prefixes = kNoPrefix,
                                      .layer = "model.layers.",
                                      .embedding = "model.embed_tokens",
                                      .final_norm = "model.norm",
                                      .output = "lm_head",
                                      .attention_norm = "input_layernorm",
                                      .q = "self_attn.q_proj",
                                      .k = "self_attn.k_proj",
                                      .v = "self_attn.v_proj",
                                      .q_norm = "self_attn.q_norm",
                                      .k_norm = "self_attn.k_norm",
                                      .attention_out = "self_attn.o_proj",
                                      .feed_forward_norm = "post_attention_layernorm",
                                      .gate = "mlp.gate_proj",
                                      .up = "mlp.up_proj",
                                      .down = "mlp.down_proj"};

/// Layout of a network's weights in files.
struct DecoderFiles {
  DecoderNames names = kLlamaNames;
  /// The order of rows in `qkv`. true: for each key head its query heads, key and value (GPT-NeoX,
  /// Falcon); false: all queries, all keys, all values.
  bool qkv_grouped = false;
  SourceForm matrices = SourceForm::kAsInFile;  // the layers' matrices: or kTransposed
  SourceForm gains = SourceForm::kAsInFile;     // gains of every norm: or kPlusOne
  SourceForm experts = SourceForm::kAsInFile;   // tensors with all experts: or kTransposed
  /// All gate rows precede the up rows in `expert_gate_up`. No checkpoint has this order, but
  /// PEFT's adapters do.
  bool gates_above = false;
  SourceForm state_rates = SourceForm::kAsInFile;  // A: or kMinusExp
  bool flat_convolution = true;  // (channels, taps); else PyTorch's (channels, 1, taps)
};

/// Layout of the network in files of the other format: Hugging Face's for a GGUF model, GGUF for a
/// Hugging Face model. Adapters can have either.
struct OtherDecoderFiles {
  DecoderFiles files;
  RotaryPairs pairs = RotaryPairs::kHalves;  // order of the rows of queries and keys
  std::string architecture;                  // GGUF architecture; empty: Hugging Face's
};

struct DecoderConfig {
  DecoderFiles files;
  std::optional<OtherDecoderFiles> other_files;  // none: there are no such files
  uint32_t width = 0, vocabulary = 0, context = 0;
  DecoderEmbedding embedding;
  DecoderNorms norms;
  Residual residual = Residual::kSequential;
  float residual_multiplier = 1;  // factor of a sublayer's output: Granite
  DecoderAttention attention;
  std::vector<RopeConfig> ropes;  // rotary embeddings; DecoderLayerConfig::rope is an index
  DecoderFeedForward feed_forward;
  std::optional<DecoderStateSpace> state_space;  // replaces attention
  std::vector<DecoderLayerConfig> layers;
  DecoderOutput output;
  GenerationConfig generation;
  /// Pieces that end an answer, if the vocabulary has them as special tokens.
  std::span<const char* const> end_pieces = {};
  bool sees = false;  // prompts can contain embeddings of images
};

/// Reads the keys of Hugging Face's LlamaConfig, which most families share; all layers are equal.
/// Throws ModelError naming file and key when a key is missing, out of range, or asks for an
/// unsupported feature that would change the results.
DecoderConfig read_llama_like(const ConfigReader& config);

/// Makes all norms layer norms. key: the key of their epsilon.
void use_layer_norms(const ConfigReader& config, const char* key, bool bias,
                     DecoderConfig& decoder);

/// Throws ModelError when `key` is present and not null, false or 0, because its feature is not
/// supported.
void require_absent(const ConfigReader& config, const char* key);

/// Sets the window (`sliding_window`) of layers with a sliding window, which `layer_types` lists
/// ("full_attention", "sliding_attention"). slides: decides when there is no `layer_types`.
void read_windows(const ConfigReader& config, DecoderConfig& decoder,
                  bool (*slides)(uint32_t layer, const ConfigReader&));

/// Reads one rotary embedding for all layers (models/core/rope_config.h). share: default share of a
/// head that rotates.
void read_one_rope(const ConfigReader& config, DecoderConfig& decoder, double share = 1);

}  // namespace mulciber
