// ViT, and DeiT, which adds a distillation token before the patches.
#include "models/families/vision_family.h"

namespace mulciber {
namespace {

constexpr const char* kVitPrefixes[] = {"vit.", ""};
constexpr const char* kDeitPrefixes[] = {"deit.", ""};

VisionConfig read_vit_like(const ConfigReader& config, std::span<const char* const> prefixes) {
  VisionConfig vision;
  VisionTower& tower = vision.tower;
  tower.norm_epsilon = 1e-12f;
  read_vision_tower(config, tower);
  tower.hidden = static_cast<uint32_t>(config.integer("intermediate_size", 1, kWidest));
  tower.attention_bias = config.boolean_or("qkv_bias", true);
  tower.names = {.prefixes = prefixes,
                 .layer = "encoder.layer.",
                 .attention_norm = "layernorm_before",
                 .q = "attention.attention.query",
                 .k = "attention.attention.key",
                 .v = "attention.attention.value",
                 .attention_out = "attention.output.dense",
                 .feed_forward_norm = "layernorm_after",
                 .up = "intermediate.dense",
                 .down = "output.dense",
                 .final_norm = "layernorm"};
  tower.patches = "embeddings.patch_embeddings.projection";
  tower.positions = "embeddings.position_embeddings";
  tower.first_tokens = {"embeddings.cls_token"};
  tower.pooler = "pooler.dense";
  return vision;
}

VisionConfig read_vit(const ConfigReader& config) {
  VisionConfig vision = read_vit_like(config, kVitPrefixes);
  if (is_of_class(config, "ForImageClassification")) {
    vision.head = VisionHead::kClass;
    read_vision_labels(config, vision);
  }
  return vision;
}

VisionConfig read_deit(const ConfigReader& config) {
  VisionConfig vision = read_vit_like(config, kDeitPrefixes);
  vision.tower.first_tokens.push_back("embeddings.distillation_token");
  if (is_of_class(config, "ForImageClassificationWithTeacher")) {
    vision.head = VisionHead::kClassAndTeacher;
    vision.classifier = "cls_classifier";
    vision.teacher = "distillation_classifier";
  } else if (is_of_class(config, "ForImageClassification")) {
    vision.head = VisionHead::kClass;
  }
  if (vision.head != VisionHead::kNone) read_vision_labels(config, vision);
  return vision;
}

}  // namespace

constinit const VisionFamily kVit = {
    "vit", {Capability::kEncodeImages, Capability::kClassifyImages}, read_vit};
constinit const VisionFamily kDeit = {
    "deit", {Capability::kEncodeImages, Capability::kClassifyImages}, read_deit};

}  // namespace mulciber
