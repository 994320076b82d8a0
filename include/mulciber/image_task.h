// A vision transformer in slices, on the application's device: embeddings, hidden states and
// attention maps of an image are written to the application's buffers and images.
// docs/guide/embedding.md is the guide. Errors are the types of mulciber/error.h; nothing is
// printed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "mulciber/embedding.h"
#include "mulciber/image_encoder.h"

namespace mulciber {

struct ImageTaskOptions {
  ImagePoolingChoice pooling = ImagePoolingChoice::kModel;
  bool normalize = false;  // scale the embedding to length 1
  bool attention = false;  // keep the attention maps of all layers and heads
};

/// Names an attention map: the attention of one token of an image to each patch.
struct PatchMap {
  uint32_t layer = 0, head = 0;
  /// The patch that attends, counted row by row; none: the class token, in models that have one.
  std::optional<uint32_t> patch;
};

/// Computes the embedding of one image.
class MULCIBER_API ImageTask : public FrameTask {
 public:
  /// Resizes and crops the image, on the CPU. Throws as ImageEncoder::embed(), and ModelError when
  /// the maps would take more than a gibibyte.
  ImageTask(ImageEncoder& encoder, const Image& image, const ImageTaskOptions& options = {});
  /// Takes pixels in the model's input size, for instance those of a frame: `size` pixels of
  /// R8G8B8A8, row by row without padding; alpha is ignored. The first slice copies them, by the
  /// rules of EmbeddingTask's embeddings. Throws ModelError for a size that the model does not
  /// take.
  ImageTask(ImageEncoder& encoder, const ApplicationBuffer& pixels, VkExtent2D size,
            const ImageTaskOptions& options = {});
  ~ImageTask() override;

  /// Patches across and down.
  VkExtent2D patches() const;
  /// Layers and heads of the maps; 0 without ImageTaskOptions::attention.
  uint32_t layers() const;
  uint32_t heads() const;
  /// Floats in the embedding, and in a token's hidden state.
  uint32_t vector_width() const;
  uint32_t state_width() const;
  uint32_t tokens() const;  // tokens before the patches included
  /// True once the last slice was recorded, or submitted by step(): copies can be recorded then.
  bool recorded() const;
  /// Record copies of the embedding, vector_width() floats; of the hidden states, (tokens(),
  /// state_width()) floats; and of a map, a texel or a float for each patch. The rules are those of
  /// AttentionTask::record_attention().
  void record_vector(VkCommandBuffer commands, const ApplicationBuffer& to);
  void record_states(VkCommandBuffer commands, const ApplicationBuffer& to);
  void record_attention(VkCommandBuffer commands, const ApplicationImage& to, const PatchMap& map);
  void record_attention(VkCommandBuffer commands, const ApplicationBuffer& to, const PatchMap& map);
  /// Returns what ImageEncoder::embed() gives for that image. The task must be done. `complete` is
  /// false when it was cancelled. Throws ModelError when the embedding is not finite.
  ImageVector result();

 private:
  struct Work;
  explicit ImageTask(std::unique_ptr<Work> work);
  void require_recorded() const;
  std::unique_ptr<Work> work_;
};

// Deprecated names of version 0.1.
using PictureTaskOptions [[deprecated("use ImageTaskOptions")]] = ImageTaskOptions;
using PictureTask [[deprecated("use ImageTask")]] = ImageTask;

}  // namespace mulciber
