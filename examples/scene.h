// A grid of turning cubes, drawn into an image: the frame that a network has to fit beside.
#pragma once

#include "drawing_host.h"

class Scene {
 public:
  /// side: cubes in a row and in a column.
  Scene(DrawingHost& host, VkExtent2D extent, uint32_t side);
  /// Records a render pass. turn: radians. The image stands in TRANSFER_SRC_OPTIMAL then.
  void draw(VkCommandBuffer commands, float turn) const;
  const DrawnImage& image() const { return color_; }

 private:
  VkExtent2D extent_;
  uint32_t side_;
  DrawnImage color_, depth_;
  VkRenderPass render_pass_ = VK_NULL_HANDLE;
  VkFramebuffer framebuffer_ = VK_NULL_HANDLE;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  VkPipeline pipeline_ = VK_NULL_HANDLE;
};
