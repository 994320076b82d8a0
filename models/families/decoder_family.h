// A decoder-only family: one record with everything that is specific to it, for every file format.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "checkpoints/checkpoint.h"
#include "models/families/decoder_config.h"
#include "models/families/gguf_metadata.h"

namespace mulciber {

/// A metadata key of GGUF files, without the architecture and dot before it, and the equivalent key
/// of config.json.
struct GgufKey {
  const char* gguf;
  const char* config;
};

/// Keys of architectures with a config.json like Llama's.
constexpr GgufKey kLlamaKeys[] = {
    {"context_length", "max_position_embeddings"},
    {"embedding_length", "hidden_size"},
    {"block_count", "num_hidden_layers"},
    {"feed_forward_length", "intermediate_size"},
    {"attention.head_count", "num_attention_heads"},
    {"attention.head_count_kv", "num_key_value_heads"},
    {"attention.key_length", "head_dim"},
    {"attention.layer_norm_rms_epsilon", "rms_norm_eps"},
    {"attention.sliding_window", "sliding_window"},
    {"rope.freq_base", "rope_theta"},
    {"rope.freq_base_swa", "rope_local_base_freq"},
    {"attn_logit_softcapping", "attn_logit_softcapping"},
    {"final_logit_softcapping", "final_logit_softcapping"},
    {"expert_count", "num_local_experts"},
    {"expert_used_count", "num_experts_per_tok"},
};

/// The key of the layer norms' epsilon, whose name in config.json differs between families.
constexpr GgufKey epsilon_key(const char* config) {
  return {"attention.layer_norm_epsilon", config};
}

/// Names of tensors in GGUF files.
constexpr DecoderNames kGgufNames = {.prefixes = kNoPrefix,
                                     .layer = "blk.",
                                     .embedding = "token_embd",
                                     .positions = "position_embd",
                                     .final_norm = "output_norm",
                                     .output = "output",
                                     .attention_norm = "attn_norm",
                                     .q = "attn_q",
                                     .k = "attn_k",
                                     .v = "attn_v",
                                     .q_norm = "attn_q_norm",
                                     .k_norm = "attn_k_norm",
                                     .attention_out = "attn_output",
                                     .after_attention_norm = "post_attention_norm",
                                     .feed_forward_norm = "ffn_norm",
                                     .gate = "ffn_gate",
                                     .up = "ffn_up",
                                     .down = "ffn_down",
                                     .router = "ffn_gate_inp",
                                     .expert_gate = "ffn_gate_exps",
                                     .expert_up = "ffn_up_exps",
                                     .expert_down = "ffn_down_exps",
                                     .shared_gate = "ffn_gate_shexp",
                                     .shared_up = "ffn_up_shexp",
                                     .shared_down = "ffn_down_shexp",
                                     .shared_router = "ffn_gate_inp_shexp",
                                     .after_feed_forward_norm = "post_ffw_norm"};

/// kGgufNames for feed-forward networks without a gate.
constexpr DecoderNames kPlainGgufNames = [] {
  DecoderNames names = kGgufNames;
  names.gate = nullptr;
  return names;
}();
/// kPlainGgufNames with queries, keys and values in one matrix.
constexpr DecoderNames kFusedGgufNames = [] {
  DecoderNames names = kPlainGgufNames;
  names.qkv = "attn_qkv";
  return names;
}();

/// A family in files of llama.cpp's converters. Their matrices are not transposed, and 1 is already
/// added to gains.
struct GgufFamily {
  const char* architecture;
  /// A key that is present and not 0 only in this family's files of the architecture; nullptr: the
  /// architecture has no other family.
  const char* only_with = nullptr;
  std::span<const GgufKey> keys = kLlamaKeys;
  std::span<const GgufKey> more_keys = {};
  /// The activation function, which the files do not contain: key of config.json and value.
  const char *activation_key = "hidden_act", *activation = nullptr;
  DecoderNames names = kGgufNames;
  /// Order of the rows of queries and keys: converters may permute them.
  RotaryPairs pairs = RotaryPairs::kHalves;
  /// Completes the configuration with facts that the keys do not give. nullptr: it is complete.
  void (*complete)(const GgufMetadata& metadata, Json& config) = nullptr;
  /// Adapts names that differ between files of the family. nullptr: none differ.
  void (*rename)(const Checkpoint& checkpoint, DecoderNames& names) = nullptr;
};

struct DecoderFamily {
  const char* model_type;  // `model_type` of config.json
  /// Reads config.json. Throws ModelError naming file and key.
  DecoderConfig (*read)(const ConfigReader& config);
  std::optional<GgufFamily> gguf = {};  // none: no GGUF files exist, or `as_gguf` describes them
  /// Pieces that end an answer of the family's chat models when no configuration lists their ids.
  std::span<const char* const> end_pieces = {};
  /// The family of this one's converted GGUF files. nullptr: this one.
  const DecoderFamily* as_gguf = nullptr;
};

/// Reads a checkpoint's configuration and generation_config.json. Throws ModelError.
DecoderConfig read_decoder_config(const Checkpoint& checkpoint, const DecoderFamily& family);
/// Reads decoding settings of a Hugging Face folder from generation_config.json and its
/// configuration. Ids outside the vocabulary are left out. Throws ModelError.
GenerationConfig read_decoder_generation(const Checkpoint& checkpoint, const Json& config,
                                         uint32_t vocabulary);

}  // namespace mulciber
