// A decoder-only family: one record, which says all that this library knows of it, for every file
// format.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "checkpoints/checkpoint.h"
#include "models/families/decoder_config.h"
#include "models/families/gguf_metadata.h"

namespace mulciber {

/// A metadata key of GGUF files, behind the architecture and a dot, and the key of config.json that
/// says the same.
struct GgufKey {
  const char* gguf;
  const char* config;
};

/// Keys of architectures whose config.json is like Llama's.
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

/// A key for the epsilon of layer norms, which families call differently.
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

/// The same where feed-forward networks have no gate.
constexpr DecoderNames kPlainGgufNames = [] {
  DecoderNames names = kGgufNames;
  names.gate = nullptr;
  return names;
}();
/// The same with queries, keys and values in one matrix.
constexpr DecoderNames kFusedGgufNames = [] {
  DecoderNames names = kPlainGgufNames;
  names.qkv = "attn_qkv";
  return names;
}();

/// What llama.cpp's converters make of a family. Matrices and gains are always as the network has
/// them: not transposed, and with their 1.
struct GgufFamily {
  const char* architecture;
  /// A key that only this family's files of the architecture have, and not as 0. nullptr: all are.
  const char* only_with = nullptr;
  std::span<const GgufKey> keys = kLlamaKeys;
  std::span<const GgufKey> more_keys = {};
  /// The activation function, which the files do not name: key of config.json, value.
  const char *activation_key = "hidden_act", *activation = nullptr;
  DecoderNames names = kGgufNames;
  /// Rotary pairs as the rows of queries and keys are ordered: converters may permute them.
  RotaryPairs pairs = RotaryPairs::kHalves;
  /// What keys alone do not say, into the configuration. nullptr: nothing.
  void (*complete)(const GgufMetadata& metadata, Json& config) = nullptr;
  /// Where files of the family differ in their names. nullptr: they do not.
  void (*rename)(const Checkpoint& checkpoint, DecoderNames& names) = nullptr;
};

struct DecoderFamily {
  const char* model_type;  // of config.json
  /// Throws ModelError naming file and key.
  DecoderConfig (*read)(const ConfigReader& config);
  std::optional<GgufFamily> gguf = {};  // none: there are no such files, or `as_gguf` has them
  /// Pieces that end an answer in what the family's makers trained to chat, where no configuration
  /// names their ids.
  std::span<const char* const> end_pieces = {};
  /// The family of which GGUF files are, once this one is converted. nullptr: its own.
  const DecoderFamily* as_gguf = nullptr;
};

/// A checkpoint's configuration as its family reads it, with what generation_config.json says.
/// Throws ModelError.
DecoderConfig read_decoder_config(const Checkpoint& checkpoint, const DecoderFamily& family);
/// What generation_config.json and a configuration say of a Hugging Face folder's model, of which
/// ids past the vocabulary are left out. Throws ModelError.
GenerationConfig read_decoder_generation(const Checkpoint& checkpoint, const Json& config,
                                         uint32_t vocabulary);

}  // namespace mulciber
