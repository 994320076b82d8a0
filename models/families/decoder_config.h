// What sets one decoder-only network apart from another, in the words of the papers. A family's
// configuration is read into this description (models/families/decoder_family.h), and
// models/networks/decoder_network.h builds the network that it describes, or says what of it no
// network here does yet.
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

/// Where a sublayer's norm stands.
enum class NormPlace {
  kBefore,  // of what the sublayer reads: Xiong et al. 2020, arXiv:2002.04745
  kAfter,   // of what it gives, before that is added: OLMo 2, arXiv:2501.00656
  kBoth,    // sandwich: Ding et al. 2021, arXiv:2105.13290; Gemma 2, arXiv:2408.00118
};

struct DecoderNorms {
  NormKind kind = NormKind::kRms;  // kLayer or kRms
  NormPlace place = NormPlace::kBefore;
  bool gains = true;  // false: layer norms without weights: OLMo, arXiv:2402.00838
  bool bias = false;  // of a layer norm: Cohere's has none
  float epsilon = 1e-5f;
};

/// How the two sublayers of a layer join the residual stream x. A attends, F feeds forward, each
/// with its norm.
enum class Residual {
  kSequential,          // y = x + A(x), then y + F(y): Radford et al. 2019
  kParallel,            // x + A(x) + F(x): Black et al. 2022 (GPT-NeoX), arXiv:2204.06745
  kParallelSharedNorm,  // the same, with one norm for both: Wang and Komatsuzaki 2021 (GPT-J)
};

/// Whether queries and keys are normalized before they are rotated, and with which gains. Source:
/// Dehghani et al. 2023, arXiv:2302.05442.
enum class QueryKeyNorm {
  kNone,
  kPerHead,   // each head by itself, the same gains for all: Qwen 3, Gemma 3
  kOwnGains,  // each head by itself, each with its own gains: Command R+
  kAllHeads,  // all heads together: OLMo 2
};

/// Multi-head latent attention (layers/causal_decoder.h): widths of the narrow vectors, and what of
/// a head of keys comes from the shared one.
struct DecoderLatent {
  uint32_t query_rank = 0;  // 0: queries are projected at once
  uint32_t rank = 0;        // of keys and values
  uint32_t rotated = 0;     // elements of a head that rotate; files have them last
  uint32_t value_size = 0;
};

struct DecoderAttention {
  uint32_t heads = 0, kv_heads = 0, head_size = 0;  // grouped-query: Ainslie 2023, arXiv:2305.13245
  float scale = 1;                                  // onto q k^T
  float soft_cap = 0;                               // of scores, 0: none: Gemma 2, arXiv:2408.00118
  bool sinks = false;  // a logit per head that takes part in the softmax alone: Agarwal et al. 2025
                       // (gpt-oss), arXiv:2508.10925
  float clip = 0;      // queries, keys and values are no further from 0; 0: none: OLMo, as DBRX
  std::optional<DecoderLatent> latent;  // heads and kv_heads are as many
  QueryKeyNorm qk_norm = QueryKeyNorm::kNone;
  bool qkv_bias = false, out_bias = false;

  uint32_t query_columns() const { return heads * head_size; }
  uint32_t key_columns() const { return kv_heads * head_size; }
  /// Of what attention gives.
  uint32_t value_columns() const { return heads * (latent ? latent->value_size : head_size); }
};

constexpr std::int64_t kMostExperts = 1024;
/// As many as ops/search.h chooses at once.
constexpr std::int64_t kMostExpertsPerToken = 64;

/// How experts are chosen where not by their softmax alone (ops/routing.h).
struct DecoderRouting {
  bool sigmoid = false, bias = false, two_best = false;
  uint32_t groups = 1, groups_used = 1;
  float scale = 1;
};

/// A mixture of experts instead of one feed-forward network (layers/mixture_of_experts.h).
struct DecoderExperts {
  uint32_t count = 0, per_token = 0;
  bool normalized = true;  // the gates of the chosen add up to 1
  std::optional<DecoderRouting> routing;
  /// Of a network beside the experts, which every token goes through: Dai et al. 2024
  /// (DeepSeekMoE), arXiv:2401.06066. 0: there is none.
  uint32_t shared_hidden = 0;
  bool router_bias = false;
  float limit = 0;           // ExpertOptions::limit
  bool shared_gate = false;  // its result is multiplied by sigmoid of a product of its own: Qwen 2
};

/// Layers that keep a state in place of attention and feed-forward (layers/state_space.h).
struct DecoderStateSpace {
  uint32_t channels = 0, states = 0, taps = 0;
  uint32_t rank = 0;  // of the time step's projection
  bool bias = false;  // of the projections into and out of the layer
  bool convolution_bias = true;
  /// Of root-mean-square norms without weights, which the time step's vector, B and C go through:
  /// Zuo et al. 2024 (Falcon Mamba), arXiv:2410.05355.
  std::optional<float> norm_epsilon;
};

enum class FeedForwardKind {
  kPlain,  // activation(x U^T) D^T: Vaswani et al. 2017, arXiv:1706.03762
  kGated,  // (activation(x G^T) * (x U^T)) D^T: Shazeer 2020, arXiv:2002.05202
};

struct DecoderFeedForward {
  FeedForwardKind kind = FeedForwardKind::kGated;
  uint32_t hidden = 0;        // of one expert, where there are any
  uint32_t dense_hidden = 0;  // of layers without experts, where others have some
  Activation activation = Activation::kNone;
  bool bias = false;
  std::optional<DecoderExperts> experts;
};

struct DecoderEmbedding {
  float multiplier = 1;            // onto the embedding of a token
  bool learned_positions = false;  // a table of weights is added
};

struct DecoderOutput {
  bool tied = false;  // the matrix is the embedding: Press and Wolf 2017, arXiv:1608.05859
  bool bias = false;
  float multiplier = 1;  // onto the logits
  float soft_cap = 0;    // of the logits, 0: none: Gemma 2
};

struct DecoderLayerConfig {
  uint32_t window = 0;  // a token sees that many, itself included; 0: all
  /// Index into DecoderConfig::ropes. None: queries and keys are not rotated (Kazemnejad et al.
  /// 2023, arXiv:2305.19466).
  std::optional<uint32_t> rope = 0;
  bool dense = false;  // one feed-forward network, where other layers have experts
};

/// Names of a family's tensors in its files, without ".weight" and ".bias". Those of a layer stand
/// behind `layer`, its number and a dot. nullptr: the family has none.
struct DecoderNames {
  std::span<const char* const> prefixes;  // any of these may stand before every name
  const char* layer = nullptr;
  const char* embedding = nullptr;
  const char* positions = nullptr;
  const char* final_norm = nullptr;
  const char* output = nullptr;
  std::span<const char* const> output_prefixes = {};  // where they are other ones
  const char* attention_norm = nullptr;
  const char* qkv = nullptr;  // queries, keys and values in one matrix; or in three:
  const char *q = nullptr, *k = nullptr, *v = nullptr;
  const char *q_norm = nullptr, *k_norm = nullptr;
  // Of latent attention: the way to the narrow vector of queries, its norm, the way from there; the
  // way to that of keys and values with the keys that rotate behind it, its norm, the way from
  // there.
  const char *query_down = nullptr, *query_norm = nullptr, *query_up = nullptr;
  const char *key_value_down = nullptr, *key_value_norm = nullptr, *key_value_up = nullptr;
  const char* attention_out = nullptr;
  const char* after_attention_norm = nullptr;
  const char* feed_forward_norm = nullptr;
  const char* gate_up = nullptr;  // gate and up in one matrix, gate first; or in two:
  const char *gate = nullptr, *up = nullptr;
  const char* down = nullptr;
  const char* router = nullptr;
  const char* router_choice = nullptr;  // DecoderRouting::bias, with its ending
  const char* sinks = nullptr;
  /// Matrices of experts: all of them in one tensor, or one each, with its number instead of {}.
  /// Gate and up in one, row by row in turns (or as DecoderFiles::gates_above); or in two:
  const char* expert_gate_up = nullptr;
  const char *expert_gate = nullptr, *expert_up = nullptr, *expert_down = nullptr;
  const char *shared_gate = nullptr, *shared_up = nullptr, *shared_down = nullptr;
  const char* shared_router = nullptr;  // of DecoderExperts::shared_gate
  // Of state-space layers, whose norm is `attention_norm`: the projections in, to the time step's
  // vector with B and C below, from that vector, and out; the convolution; A and D, with their
  // endings.
  const char *state_in = nullptr, *state_select = nullptr, *state_step = nullptr,
             *state_out = nullptr;
  const char *convolution = nullptr, *state_rates = nullptr, *state_skip = nullptr;
  const char* after_feed_forward_norm = nullptr;
};

constexpr const char* kNoPrefix[] = {""};
/// Hugging Face's names since Llama.
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

/// How files hold a network's weights.
struct DecoderFiles {
  DecoderNames names = kLlamaNames;
  /// The one matrix of queries, keys and values has for each head of keys its queries, the key and
  /// the value (GPT-NeoX, Falcon); else all queries, all keys, all values.
  bool qkv_grouped = false;
  SourceForm matrices = SourceForm::kAsInFile;  // of the layers: or kTransposed
  SourceForm gains = SourceForm::kAsInFile;     // of every norm: or kPlusOne
  SourceForm experts = SourceForm::kAsInFile;   // of tensors with all experts: or kTransposed
  /// Of experts' gates and values in one tensor the gates come first; no checkpoint has them so,
  /// but PEFT's adapters do.
  bool gates_above = false;
  SourceForm state_rates = SourceForm::kAsInFile;  // A: or kMinusExp
  bool flat_convolution = true;  // (channels, taps); else (channels, 1, taps), as PyTorch has them
};

/// The same in files of the other format: Hugging Face's of a network that is read from a GGUF
/// file, and the other way round. Adapters are made for either.
struct OtherDecoderFiles {
  DecoderFiles files;
  RotaryPairs pairs = RotaryPairs::kHalves;  // as rows of queries and keys are ordered
  std::string architecture;                  // of GGUF files; empty: Hugging Face's
};

struct DecoderConfig {
  DecoderFiles files;
  std::optional<OtherDecoderFiles> other_files;  // none: there are no such files
  uint32_t width = 0, vocabulary = 0, context = 0;
  DecoderEmbedding embedding;
  DecoderNorms norms;
  Residual residual = Residual::kSequential;
  float residual_multiplier = 1;  // onto what a sublayer gives: Granite
  DecoderAttention attention;
  std::vector<RopeConfig> ropes;  // rotary position embeddings, for the layers to choose from
  DecoderFeedForward feed_forward;
  std::optional<DecoderStateSpace> state_space;  // then there is no attention
  std::vector<DecoderLayerConfig> layers;
  DecoderOutput output;
  GenerationConfig generation;
  /// Pieces that end an answer, where the vocabulary has them as special tokens.
  std::span<const char* const> end_pieces = {};
  bool sees = false;  // prompts hold embeddings that no token has, of pictures
};

/// Keys as in Hugging Face's LlamaConfig, which most families share; `layers` all alike.
/// Throws ModelError naming file and key: missing, out of range, or a value that would change the
/// numbers and is not supported.
DecoderConfig read_llama_like(const ConfigReader& config);

/// The norms of a layer are layer norms; key: of their epsilon.
void use_layer_norms(const ConfigReader& config, const char* key, bool bias,
                     DecoderConfig& decoder);

/// Throws ModelError when `key` is there and neither null, false nor 0: what it asks for is not
/// supported.
void require_absent(const ConfigReader& config, const char* key);

/// `layer_types` ("full_attention", "sliding_attention"); otherwise every layer slides that
/// `slides` says. Sets window (from `sliding_window`) of those layers.
void read_windows(const ConfigReader& config, DecoderConfig& decoder,
                  bool (*slides)(uint32_t layer, const ConfigReader&));

/// One rotary position embedding for all layers (models/core/rope_config.h). share: of a head
/// that rotates, where the configuration does not say.
void read_one_rope(const ConfigReader& config, DecoderConfig& decoder, double share = 1);

}  // namespace mulciber
