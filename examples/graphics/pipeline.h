// A pipeline for a render target: its vertex shader makes the triangles.
#pragma once

#include <cstdint>
#include <span>

#include "render_target.h"

namespace graphics {

struct PipelineParts {
  std::span<const uint32_t> vertex, fragment;  // SPIR-V
  VkPipelineLayout layout = VK_NULL_HANDLE;
  VkPrimitiveTopology topology = VK_PRIMITIVE_TOPOLOGY_TRIANGLE_STRIP;
  bool depth = true;  // depth test: nearer triangles hide others
};

/// The caller destroys it. Viewport and scissor are set when drawing.
VkPipeline make_pipeline(const Device& device, const RenderTarget& target,
                         const PipelineParts& parts);

}  // namespace graphics
