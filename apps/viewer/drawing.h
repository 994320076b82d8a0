// Draws maps in the scene: arcs between words, the wall of tiles, and the picked map in a rectangle
// of the window. All of them read the images that the network has filled.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <glm/glm.hpp>

#include "apps/viewer/frames.h"
#include "apps/viewer/heat_maps.h"
#include "apps/viewer/theme.h"
#include "apps/viewer/words.h"
#include "examples/graphics/buffer.h"
#include "examples/graphics/render_target.h"

namespace mulciber::viewer {

/// Push constants of every shader; shaders/scene.glsl declares the same.
struct DrawnMap {
  glm::mat4 view_projection = glm::mat4(1);
  glm::vec2 viewport = {};
  float threshold = 0, width = 0;
  uint32_t map = 0, queries = 0, keys = 0, rows = 0;
  int32_t focus_query = -1, focus_key = -1;
  float range = 1, scale = 1;
};
static_assert(sizeof(DrawnMap) == 112);

class Drawing {
 public:
  Drawing(graphics::Device& device, const graphics::RenderTarget& target);
  ~Drawing();
  Drawing(const Drawing&) = delete;
  Drawing& operator=(const Drawing&) = delete;

  /// Sets what is drawn in the frame of this slot. The frame that had the slot before has ended.
  void prepare(size_t slot, const graphics::Image& maps, const WordCurves& curves,
               const std::vector<Tile>& tiles, const Theme& theme);
  /// Draws inside of the render pass. rectangle: where, in pixels of the image.
  void draw_arcs(VkCommandBuffer commands, const Rectangle& rectangle, const DrawnMap& map) const;
  void draw_tiles(VkCommandBuffer commands, const Rectangle& rectangle, const DrawnMap& map) const;
  void draw_map(VkCommandBuffer commands, const Rectangle& rectangle, const DrawnMap& map) const;

 private:
  struct Slot {
    std::unique_ptr<graphics::Buffer> words, tiles, colors;
    VkDescriptorSet set = VK_NULL_HANDLE;
  };
  void make_sets();
  void make_pipelines(const graphics::RenderTarget& target);
  void draw(VkCommandBuffer commands, VkPipeline pipeline, const Rectangle& rectangle,
            const DrawnMap& map, uint32_t vertices, uint32_t instances) const;

  graphics::Device& device_;
  VkSampler sampler_ = VK_NULL_HANDLE;
  VkDescriptorSetLayout set_layout_ = VK_NULL_HANDLE;
  VkDescriptorPool pool_ = VK_NULL_HANDLE;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  VkPipeline arcs_ = VK_NULL_HANDLE, tiles_ = VK_NULL_HANDLE, map_ = VK_NULL_HANDLE;
  std::array<Slot, Frames::kInFlight> slots_;
  size_t slot_ = 0;
  uint32_t tile_count_ = 0;
};

}  // namespace mulciber::viewer
