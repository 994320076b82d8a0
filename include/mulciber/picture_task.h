// Pictures through a vision transformer in slices, on the host's device: vectors, states and maps
// of attention over their patches in the host's memory. docs/guide/embedding.md is the guide.
// Errors are the types of mulciber/error.h; nothing is printed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "mulciber/embedding.h"
#include "mulciber/image_encoder.h"

namespace mulciber {

struct PictureTaskOptions {
  PicturePoolingChoice pooling = PicturePoolingChoice::kModel;
  bool normalize = false;  // a vector of length 1
  bool attention = false;  // keep the maps of all layers and heads
};

/// What one token of a picture attends to among its patches: a number for each, as they lie.
struct PatchMap {
  uint32_t layer = 0, head = 0;
  /// The patch that attends, counted line by line; not given: the token that stands for the whole,
  /// in models that have one.
  std::optional<uint32_t> patch;
};

/// A picture through a vision transformer.
class MULCIBER_API PictureTask : public FrameTask {
 public:
  /// The picture is resized and cut here, on the host. Throws as ImageEncoder::embed(), and
  /// ModelError where the maps would take more than a gibibyte.
  PictureTask(ImageEncoder& encoder, const Picture& picture,
              const PictureTaskOptions& options = {});
  /// Of pixels that are as the model reads them, such as a frame's: `size` of R8G8B8A8, line by
  /// line without padding, of which alpha is not read. The first slice copies them; rules as those
  /// of EmbeddingTask's embeddings. Throws ModelError for a size that the model does not take.
  PictureTask(ImageEncoder& encoder, const HostBuffer& pixels, VkExtent2D size,
              const PictureTaskOptions& options = {});
  ~PictureTask() override;

  /// Across and down.
  VkExtent2D patches() const;
  /// Of maps; 0 without PictureTaskOptions::attention.
  uint32_t layers() const;
  uint32_t heads() const;
  /// Numbers of a vector, and of a token's state.
  uint32_t vector_width() const;
  uint32_t state_width() const;
  uint32_t tokens() const;  // those before the patches included
  /// The last slice was recorded, or submitted by step(): copies can be.
  bool recorded() const;
  /// Rules of all copies as those of AttentionTask::record_attention(): vector_width() floats;
  /// (tokens(), state_width()) floats; a texel, or a float, for each patch.
  void record_vector(VkCommandBuffer commands, const HostBuffer& to);
  void record_states(VkCommandBuffer commands, const HostBuffer& to);
  void record_attention(VkCommandBuffer commands, const HostImage& to, const PatchMap& map);
  void record_attention(VkCommandBuffer commands, const HostBuffer& to, const PatchMap& map);
  /// Of a task that is done: what ImageEncoder::embed() gives for that picture. `complete` is false
  /// when it was cancelled. Throws ModelError where the vector is not finite.
  PictureVector result();

 private:
  struct Work;
  explicit PictureTask(std::unique_ptr<Work> work);
  void require_recorded() const;
  std::unique_ptr<Work> work_;
};

}  // namespace mulciber
