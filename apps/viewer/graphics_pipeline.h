// A pipeline that draws triangle strips made in its vertex shader.
#pragma once

#include <cstdint>
#include <span>

#include "apps/viewer/graphics_device.h"

namespace mulciber::viewer {

struct PipelineParts {
  std::span<const uint32_t> vertex, fragment;  // SPIR-V
  VkPipelineLayout layout = VK_NULL_HANDLE;
  VkRenderPass render_pass = VK_NULL_HANDLE;
  bool depth = true;  // depth test: nearer triangles hide others
};

/// The caller destroys it. Viewport and scissor are set when drawing.
VkPipeline make_pipeline(const GraphicsDevice& device, const PipelineParts& parts);

}  // namespace mulciber::viewer
