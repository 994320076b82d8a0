// CLIP and SigLIP: one embedding space for images and texts.
#include <nlohmann/json.hpp>

#include "models/families/vision_family.h"

namespace mulciber {
namespace {

constexpr const char* kClipVisionPrefixes[] = {"vision_model."};
constexpr const char* kClipTextPrefixes[] = {"text_model."};

// Wrong end-of-text id in CLIP's first checkpoints; their tokenizer uses another.
constexpr uint32_t kWrongEnd = 2;

TowerNames clip_names(std::span<const char* const> prefixes) {
  return {.prefixes = prefixes,
          .layer = "encoder.layers.",
          .attention_norm = "layer_norm1",
          .q = "self_attn.q_proj",
          .k = "self_attn.k_proj",
          .v = "self_attn.v_proj",
          .attention_out = "self_attn.out_proj",
          .feed_forward_norm = "layer_norm2",
          .up = "mlp.fc1",
          .down = "mlp.fc2"};
}

/// Adds the defaults, those of CLIP ViT-B/32 and SigLIP base, that files omit from both towers'
/// configurations.
Json with_defaults(const ConfigReader& config, const char* key, const Json& defaults) {
  Json object = defaults;
  if (config.has(key)) {
    config.object(key);  // throws unless it is an object
    for (const auto& [name, value] : config.value(key).items()) object[name] = value;
  }
  return object;
}

void read_text_tower(const ConfigReader& config, TextTower& tower) {
  read_tower(config, tower);
  tower.names = clip_names(kClipTextPrefixes);
  tower.names.final_norm = "final_layer_norm";
  tower.hidden = static_cast<uint32_t>(config.integer("intermediate_size", 1, kWidest));
  tower.vocabulary = static_cast<uint32_t>(config.integer("vocab_size", 1, kLargestVocab));
  tower.context = static_cast<uint32_t>(config.integer("max_position_embeddings", 1, 1 << 16));
  tower.words = "embeddings.token_embedding";
  tower.positions = "embeddings.position_embedding";
}

void read_clip_vision(const ConfigReader& config, VisionTower& tower) {
  read_vision_tower(config, tower);
  tower.names = clip_names(kClipVisionPrefixes);
  tower.hidden = static_cast<uint32_t>(config.integer("intermediate_size", 1, kWidest));
  tower.patches = "embeddings.patch_embedding";
  tower.positions = "embeddings.position_embedding.weight";
  tower.positions_in_batch = false;
}

void finish_clip_tower(const ConfigReader& config, VisionTower& tower) {
  tower.norm_epsilon = 1e-5f;
  read_clip_vision(config, tower);
  tower.patch_bias = false;
  tower.first_tokens = {"embeddings.class_embedding"};
  tower.embedding_norm = "pre_layrnorm";
}

VisionConfig read_clip(const ConfigReader& config) {
  const Json images = with_defaults(config, "vision_config",
                                    {{"hidden_size", 768},
                                     {"intermediate_size", 3072},
                                     {"num_hidden_layers", 12},
                                     {"num_attention_heads", 12},
                                     {"image_size", 224},
                                     {"patch_size", 32},
                                     {"hidden_act", "quick_gelu"}});
  const Json texts = with_defaults(config, "text_config",
                                   {{"vocab_size", 49408},
                                    {"hidden_size", 512},
                                    {"intermediate_size", 2048},
                                    {"num_hidden_layers", 12},
                                    {"num_attention_heads", 8},
                                    {"max_position_embeddings", 77},
                                    {"eos_token_id", 49407},
                                    {"hidden_act", "quick_gelu"}});
  const ConfigReader image_reader(images, config.where() + ": vision_config", config.remedy());
  const ConfigReader text_reader(texts, config.where() + ": text_config", config.remedy());
  VisionConfig vision;
  VisionTower& tower = vision.tower;
  finish_clip_tower(image_reader, tower);
  tower.pooled_norm = "post_layernorm";
  TextTower text;
  text.norm_epsilon = 1e-5f;
  read_text_tower(text_reader, text);
  text.causal = true;
  text.end = static_cast<uint32_t>(text_reader.integer("eos_token_id", 0, kLargestVocab));
  text.largest_id_ends = text.end == kWrongEnd;
  vision.texts = text;
  vision.projection = static_cast<uint32_t>(config.integer_or("projection_dim", 512, 1, kWidest));
  return vision;
}

VisionConfig read_siglip(const ConfigReader& config) {
  const Json images = with_defaults(config, "vision_config",
                                    {{"hidden_size", 768},
                                     {"intermediate_size", 3072},
                                     {"num_hidden_layers", 12},
                                     {"num_attention_heads", 12},
                                     {"image_size", 224},
                                     {"patch_size", 16},
                                     {"hidden_act", "gelu_pytorch_tanh"}});
  const Json texts = with_defaults(config, "text_config",
                                   {{"vocab_size", 32000},
                                    {"hidden_size", 768},
                                    {"intermediate_size", 3072},
                                    {"num_hidden_layers", 12},
                                    {"num_attention_heads", 12},
                                    {"max_position_embeddings", 64},
                                    {"pad_token_id", 1},
                                    {"hidden_act", "gelu_pytorch_tanh"}});
  const ConfigReader image_reader(images, config.where() + ": vision_config", config.remedy());
  const ConfigReader text_reader(texts, config.where() + ": text_config", config.remedy());
  VisionConfig vision;
  VisionTower& tower = vision.tower;
  read_clip_vision(image_reader, tower);
  tower.names.final_norm = "post_layernorm";
  tower.pooling = VisionPooling::kAttention;
  tower.attention_head = "head";
  TextTower text;
  read_text_tower(text_reader, text);
  text.head = "head";
  text.padded = true;
  text.pad = static_cast<uint32_t>(
      text_reader.integer_or("pad_token_id", 1, 0, std::int64_t{text.vocabulary} - 1));
  if (text_reader.integer_or("projection_size", text.width, 1, kWidest) != text.width ||
      text.width != tower.width)
    text_reader.fail("hidden_size", "is another than that of the images");
  vision.texts = text;
  vision.logit_bias = true;
  return vision;
}

}  // namespace

VisionTower read_clip_tower(const ConfigReader& config) {
  VisionTower tower;
  finish_clip_tower(config, tower);
  return tower;
}

VisionTower read_siglip_tower(const ConfigReader& config) {
  VisionTower tower;
  read_clip_vision(config, tower);
  return tower;
}

constinit const VisionFamily kClip = {
    "clip", {Capability::kEncodeImages, Capability::kMatch}, read_clip};
constinit const VisionFamily kSiglip = {
    "siglip", {Capability::kEncodeImages, Capability::kMatch}, read_siglip};

}  // namespace mulciber
