// A pipeline that draws triangles made in its vertex shader over a whole image.
#pragma once

#include "drawing_host.h"

struct PipelineParts {
  VkShaderModule vertex = VK_NULL_HANDLE, fragment = VK_NULL_HANDLE;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  VkRenderPass render_pass = VK_NULL_HANDLE;
  VkExtent2D extent = {};
  bool depth = false;  // nearer ones hide others
};

/// The caller destroys it.
VkPipeline make_pipeline(VkDevice device, const PipelineParts& parts);
