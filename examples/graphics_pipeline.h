// An image as a render target, and a pipeline that draws triangles made in its vertex shader there.
#pragma once

#include "drawing_application.h"

/// Color, and depth where it was asked for, both cleared by begin(). The layout of the color is
/// TRANSFER_SRC_OPTIMAL afterwards.
struct DrawingTarget {
  DrawnImage color;
  bool has_depth = false;
  VkRenderPass render_pass = VK_NULL_HANDLE;
  VkFramebuffer framebuffer = VK_NULL_HANDLE;

  void begin(VkCommandBuffer commands) const;
};
DrawingTarget make_target(DrawingApplication& application, VkExtent2D extent, bool depth);

struct PipelineParts {
  VkShaderModule vertex = VK_NULL_HANDLE, fragment = VK_NULL_HANDLE;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  VkRenderPass render_pass = VK_NULL_HANDLE;
  VkExtent2D extent = {};
  bool depth = false;  // depth test: nearer triangles hide others
};

/// The caller destroys it.
VkPipeline make_pipeline(VkDevice device, const PipelineParts& parts);
