// Description of vision transformers, and of text encoders trained with them, in the terms of the
// papers. A family's configuration is read into it (models/families/vision_family.h), and
// models/networks/vision_network.h builds the network.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/core/config.h"
#include "ops/matmul.h"

namespace mulciber {

/// Names of a tower's tensors, without ".weight" and ".bias". A layer's tensors have the prefix
/// `layer`, its index and a dot. nullptr: the family has no such tensor.
struct TowerNames {
  std::span<const char* const> prefixes;  // each file has one of these prefixes
  const char* layer = nullptr;
  const char *attention_norm = nullptr, *q = nullptr, *k = nullptr, *v = nullptr;
  const char *attention_out = nullptr, *feed_forward_norm = nullptr;
  const char *up = nullptr, *down = nullptr;  // if gated: gate and up in one matrix
  /// LayerScale factors of a sublayer's result, folded into its output projection at load.
  const char *attention_scale = nullptr, *feed_forward_scale = nullptr;
  const char* final_norm = nullptr;
};

/// A stack of pre-norm layers: Xiong et al. 2020, arXiv:2002.04745.
struct TowerConfig {
  TowerNames names;
  uint32_t width = 0, heads = 0, hidden = 0, layers = 0;
  bool attention_bias = true, gated = false;
  Activation activation = Activation::kGelu;
  float norm_epsilon = 1e-6f;

  uint32_t head_size() const { return width / heads; }
};

/// Pooling: how hidden states become one vector for the image.
enum class VisionPooling {
  kClass,      // the hidden state of the class token
  kAttention,  // attention of a learned query, then a feed-forward network: Zhai et al. 2022,
               // arXiv:2106.04560
};

/// Input of the classification head.
enum class VisionHead {
  kNone,
  kClass,           // the hidden state of the class token
  kClassAndMean,    // and the mean of the patches, concatenated: Oquab et al. 2023,
                    // arXiv:2304.07193
  kClassAndTeacher  // mean of the logits of two heads, which read the class and the distillation
                    // token: Touvron et al. 2021, arXiv:2012.12877
};

/// A vision transformer. Source: Dosovitskiy et al. 2021, arXiv:2010.11929.
struct VisionTower : TowerConfig {
  uint32_t channels = 3, height = 0, width_pixels = 0, patch = 0;
  /// Images of other sizes are allowed: the position table is resized bicubically.
  bool any_size = false;
  /// Learned tokens before the patches, one tensor for each. They have position embeddings too.
  std::vector<const char*> first_tokens;
  const char *patches = nullptr, *positions = nullptr;
  bool patch_bias = true, positions_in_batch = true;  // (1, tokens, D) in the file, or (tokens, D)
  const char* embedding_norm = nullptr;
  VisionPooling pooling = VisionPooling::kClass;
  const char* pooled_norm = nullptr;  // norm after pooling, if the hidden states have none
  const char* pooler = nullptr;       // a dense layer with tanh; checkpoints may lack it
  const char* attention_head = nullptr;

  uint32_t patches_across() const { return width_pixels / patch; }
  uint32_t patches_down() const { return height / patch; }
  uint32_t tokens() const {
    return static_cast<uint32_t>(first_tokens.size()) + patches_across() * patches_down();
  }
};

/// The text encoder beside it: Radford et al. 2021, arXiv:2103.00020; Zhai et al. 2023,
/// arXiv:2303.15343.
struct TextTower : TowerConfig {
  const char *words = nullptr, *positions = nullptr, *head = nullptr;
  uint32_t vocabulary = 0, context = 0, pad = 0;
  bool causal = false;
  bool padded = false;  // texts are padded to the full context, and padding is not masked
  /// Pooling takes the hidden state of the first token with this id; none: of the last token.
  std::optional<uint32_t> end;
  bool largest_id_ends = false;  // pooling takes the token with the largest id instead
};

struct VisionConfig {
  VisionTower tower;
  std::optional<TextTower> texts;
  /// Size of the embedding space that images and texts share; 0: there is no projection to it.
  uint32_t projection = 0;
  bool logit_bias = false;  // logits are scaled cosines plus a bias, with independent probabilities
  VisionHead head = VisionHead::kNone;
  const char *classifier = "classifier", *teacher = nullptr;
  std::vector<std::string> labels;
  bool several_labels = false;
  GenerationConfig generation;  // unused
};

/// Read keys of Hugging Face's ViTConfig: sizes, activation and epsilon, and for read_vision_tower
/// also image and patch size. Throw ModelError naming file and key.
void read_tower(const ConfigReader& config, TowerConfig& tower);
void read_vision_tower(const ConfigReader& config, VisionTower& tower);
/// is_of_class: whether a name in `architectures` has this ending. read_vision_labels: reads the
/// labels of a classifier.
bool is_of_class(const ConfigReader& config, const char* ending);
void read_vision_labels(const ConfigReader& config, VisionConfig& vision);

}  // namespace mulciber
