// The encoder-only families: one record each, with everything that is specific to the family.
#pragma once

#include "checkpoints/checkpoint.h"
#include "models/families/decoder_family.h"
#include "models/families/encoder_config.h"

namespace mulciber {

/// A family in files of llama.cpp's converters.
struct EncoderGguf {
  GgufFamily files;  // its names, which are a decoder's, are unused
  EncoderNames names;
};

struct EncoderFamily {
  const char* model_type;  // `model_type` of config.json
  /// Reads config.json. Throws ModelError naming file and key.
  EncoderConfig (*read)(const ConfigReader& config);
  const EncoderGguf* gguf = nullptr;  // nullptr: no GGUF files exist
};

/// Reads a checkpoint's configuration. Throws ModelError.
EncoderConfig read_encoder_config(const Checkpoint& checkpoint, const EncoderFamily& family);

/// Metadata keys of GGUF files, and the keys of BertConfig for them.
constexpr GgufKey kBertKeys[] = {{"context_length", "max_position_embeddings"},
                                 {"embedding_length", "hidden_size"},
                                 {"block_count", "num_hidden_layers"},
                                 {"feed_forward_length", "intermediate_size"},
                                 {"attention.head_count", "num_attention_heads"},
                                 {"attention.layer_norm_epsilon", "layer_norm_eps"},
                                 {"rope.freq_base", "rope_theta"}};

/// Names of tensors in GGUF files of post-norm networks.
constexpr EncoderNames kGgufBertNames = {.prefixes = kNoPrefix,
                                         .words = "token_embd",
                                         .positions = "position_embd",
                                         .types = "token_types",
                                         .embedding_norm = "token_embd_norm",
                                         .layer = "blk.",
                                         .qkv = "attn_qkv",
                                         .q = "attn_q",
                                         .k = "attn_k",
                                         .v = "attn_v",
                                         .attention_out = "attn_output",
                                         .attention_norm = "attn_output_norm",
                                         .gate = "ffn_gate",
                                         .up = "ffn_up",
                                         .down = "ffn_down",
                                         .feed_forward_norm = "layer_output_norm"};

/// Devlin et al. 2019, arXiv:1810.04805.
extern const EncoderFamily kBert;
/// Liu et al. 2019, arXiv:1907.11692.
extern const EncoderFamily kRoberta;
/// Conneau et al. 2020, arXiv:1911.02116: RoBERTa for a hundred languages.
extern const EncoderFamily kXlmRoberta;
/// Sanh et al. 2019, arXiv:1910.01108.
extern const EncoderFamily kDistilBert;
/// Clark et al. 2020, arXiv:2003.10555; the discriminator.
extern const EncoderFamily kElectra;
/// Song et al. 2020, arXiv:2004.09297.
extern const EncoderFamily kMpnet;
/// Lan et al. 2020, arXiv:1909.11942.
extern const EncoderFamily kAlbert;
/// Warner et al. 2024, arXiv:2412.13663.
extern const EncoderFamily kModernBert;
/// Nussbaum et al. 2024, arXiv:2402.01613.
extern const EncoderFamily kNomicBert;

/// He et al. 2021, arXiv:2006.03654 and arXiv:2111.09543.
extern const EncoderFamily kDebertaV2;

inline constexpr const EncoderFamily* kEncoderFamilies[] = {
    &kBert,  &kRoberta, &kXlmRoberta, &kDistilBert, &kElectra,
    &kMpnet, &kAlbert,  &kModernBert, &kNomicBert,  &kDebertaV2};

}  // namespace mulciber
