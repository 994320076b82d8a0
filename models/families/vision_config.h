// Vision Transformers, and those that were trained beside a text encoder, in the words of the
// papers that describe the parts. A family's configuration is read into this description
// (models/families/vision_family.h), and models/networks/vision_network.h builds the network.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/core/config.h"
#include "ops/matmul.h"

namespace mulciber {

/// Names of a tower's tensors, without ".weight" and ".bias"; those of a layer stand behind
/// `layer`, its number and a dot. nullptr: the family has none.
struct TowerNames {
  std::span<const char* const> prefixes;  // any of these may stand before every name
  const char* layer = nullptr;
  const char *attention_norm = nullptr, *q = nullptr, *k = nullptr, *v = nullptr;
  const char *attention_out = nullptr, *feed_forward_norm = nullptr;
  const char *up = nullptr, *down = nullptr;  // gated: gate and up in one matrix
  /// Factors of a sublayer's result, which the layers before them take in at load.
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

/// What of a picture's states stands for the whole of it.
enum class PicturePooling {
  kClass,      // the state of the class token
  kAttention,  // what a learned query attends to, and a feed-forward network: Zhai et al. 2022,
               // arXiv:2106.04560
};

/// What a classifier of pictures reads.
enum class PictureHead {
  kNone,
  kClass,           // the state of the class token
  kClassAndMean,    // and beside it the mean of the patches: Oquab et al. 2023, arXiv:2304.07193
  kClassAndTeacher  // half of it, and half of a head of its own that the distillation token has:
                    // Touvron et al. 2021, arXiv:2012.12877
};

/// Source: Dosovitskiy et al. 2021, arXiv:2010.11929.
struct PictureTower : TowerConfig {
  uint32_t channels = 3, height = 0, width_pixels = 0, patch = 0;
  /// Pictures of other sizes: the positions are resized, bicubically.
  bool any_size = false;
  /// Learned tokens before the patches, one tensor for each, which have positions too.
  std::vector<const char*> first_tokens;
  const char *patches = nullptr, *positions = nullptr;
  bool patch_bias = true, positions_in_batch = true;  // (1, tokens, D) in the file, or (tokens, D)
  const char* embedding_norm = nullptr;
  PicturePooling pooling = PicturePooling::kClass;
  const char* pooled_norm = nullptr;  // of what was pooled, where the states have none
  const char* pooler = nullptr;       // a dense layer with tanh; checkpoints may lack it
  const char* attention_head = nullptr;

  uint32_t patches_across() const { return width_pixels / patch; }
  uint32_t patches_down() const { return height / patch; }
  uint32_t tokens() const {
    return static_cast<uint32_t>(first_tokens.size()) + patches_across() * patches_down();
  }
};

/// The tower of texts beside it: Radford et al. 2021, arXiv:2103.00020; Zhai et al. 2023,
/// arXiv:2303.15343.
struct TextTower : TowerConfig {
  const char *words = nullptr, *positions = nullptr, *head = nullptr;
  uint32_t vocabulary = 0, context = 0, pad = 0;
  bool causal = false;
  bool padded = false;  // texts are padded to the full context, and the padding is attended to
  /// The text's state is that of the first of these ids; none: of its last token.
  std::optional<uint32_t> end;
  bool largest_id_ends = false;  // of the largest id instead
};

struct VisionConfig {
  PictureTower pictures;
  std::optional<TextTower> texts;
  /// Columns of the space that pictures and texts share; 0: there is no projection to it.
  uint32_t projection = 0;
  bool logit_bias = false;  // logits are scaled cosines, or these plus a number, each of its own
  PictureHead head = PictureHead::kNone;
  const char *classifier = "classifier", *teacher = nullptr;
  std::vector<std::string> labels;
  bool several_labels = false;
  GenerationConfig generation;  // none of it is used
};

/// Sizes, activation and epsilon by the keys of Hugging Face's ViTConfig, and picture and patch.
/// Throws ModelError naming file and key.
void read_tower(const ConfigReader& config, TowerConfig& tower);
void read_picture_tower(const ConfigReader& config, PictureTower& tower);
/// `architectures` and the labels that go with them. ending: of the classes that classify.
bool is_of_class(const ConfigReader& config, const char* ending);
void read_picture_labels(const ConfigReader& config, VisionConfig& vision);

}  // namespace mulciber
