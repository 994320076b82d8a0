// A grid of turning cubes, drawn into an image: the frame's own work beside a network.
#pragma once

#include "graphics_pipeline.h"

class Scene {
 public:
  /// side: cubes in a row and in a column.
  Scene(DrawingApplication& application, VkExtent2D extent, uint32_t side);
  /// Records a render pass. turn: radians. The image's layout is TRANSFER_SRC_OPTIMAL afterwards.
  void draw(VkCommandBuffer commands, float turn) const;
  const DrawnImage& image() const { return target_.color; }

 private:
  DrawingTarget target_;
  uint32_t side_;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  VkPipeline pipeline_ = VK_NULL_HANDLE;
};
