// A grid of turning cubes, drawn into an image: the frame's own work beside a network.
#pragma once

#include "graphics/render_target.h"

class Scene {
 public:
  /// side: cubes in a row and in a column.
  Scene(graphics::Device& device, VkExtent2D extent, uint32_t side);
  ~Scene();
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;

  /// Records a render pass. turn: radians.
  void draw(VkCommandBuffer commands, float turn) const;
  const graphics::RenderTarget& target() const { return target_; }

 private:
  VkDevice device_;
  graphics::RenderTarget target_;
  uint32_t side_;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  VkPipeline pipeline_ = VK_NULL_HANDLE;
};
