// DINOv2: a vision transformer with LayerScale, optional SwiGLU, and images of any size.
#include "models/families/vision_family.h"

namespace mulciber {
namespace {

constexpr const char* kDinov2Prefixes[] = {"", "dinov2."};

VisionConfig read_dinov2(const ConfigReader& config) {
  VisionConfig vision;
  VisionTower& tower = vision.tower;
  read_vision_tower(config, tower);
  tower.attention_bias = config.boolean_or("qkv_bias", true);
  const auto ratio = static_cast<uint32_t>(config.integer_or("mlp_ratio", 4, 1, 64));
  tower.hidden = tower.width * ratio;
  tower.names = {.prefixes = kDinov2Prefixes,
                 .layer = "encoder.layer.",
                 .attention_norm = "norm1",
                 .q = "attention.attention.query",
                 .k = "attention.attention.key",
                 .v = "attention.attention.value",
                 .attention_out = "attention.output.dense",
                 .feed_forward_norm = "norm2",
                 .up = "mlp.fc1",
                 .down = "mlp.fc2",
                 .attention_scale = "layer_scale1.lambda1",
                 .feed_forward_scale = "layer_scale2.lambda1",
                 .final_norm = "layernorm"};
  if (config.boolean_or("use_swiglu_ffn", false)) {
    // Gate and up each have two thirds of the width, rounded up to a multiple of 8.
    tower.hidden = (tower.hidden * 2 / 3 + 7) / 8 * 8;
    tower.gated = true;
    tower.activation = Activation::kSilu;
    tower.names.up = "mlp.weights_in";
    tower.names.down = "mlp.weights_out";
  }
  tower.patches = "embeddings.patch_embeddings.projection";
  tower.positions = "embeddings.position_embeddings";
  tower.first_tokens = {"embeddings.cls_token"};
  tower.any_size = true;
  if (is_of_class(config, "ForImageClassification")) {
    vision.head = VisionHead::kClassAndMean;
    read_vision_labels(config, vision);
  }
  return vision;
}

}  // namespace

constinit const VisionFamily kDinov2 = {
    "dinov2", {Capability::kEncodeImages, Capability::kClassifyImages}, read_dinov2};

}  // namespace mulciber
