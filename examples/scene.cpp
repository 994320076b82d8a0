#include "scene.h"

#include "graphics_pipeline.h"
#include "scene.frag.h"
#include "scene.vert.h"

namespace {

/// The layout is that of scene.vert.
struct Push {
  float turn, aspect;
  uint32_t side;
};

}  // namespace

Scene::Scene(DrawingApplication& application, VkExtent2D extent, uint32_t side)
    : target_(make_target(application, extent, true)), side_(side) {
  const VkDevice device = application.device();
  const VkPushConstantRange range = {VK_SHADER_STAGE_VERTEX_BIT, 0, sizeof(Push)};
  VkPipelineLayoutCreateInfo pushes{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
  pushes.pushConstantRangeCount = 1;
  pushes.pPushConstantRanges = &range;
  check(vkCreatePipelineLayout(device, &pushes, nullptr, &layout_), "vkCreatePipelineLayout");
  pipeline_ = make_pipeline(device, {.vertex = application.make_shader(scene_vert),
                                     .fragment = application.make_shader(scene_frag),
                                     .layout = layout_,
                                     .render_pass = target_.render_pass,
                                     .extent = extent,
                                     .depth = true});
  application.at_end([device, pipeline = pipeline_, layout = layout_] {
    vkDestroyPipeline(device, pipeline, nullptr);
    vkDestroyPipelineLayout(device, layout, nullptr);
  });
}

void Scene::draw(VkCommandBuffer commands, float turn) const {
  target_.begin(commands);
  vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_GRAPHICS, pipeline_);
  const VkExtent2D extent = target_.color.extent;
  const Push push = {turn, static_cast<float>(extent.width) / static_cast<float>(extent.height),
                     side_};
  vkCmdPushConstants(commands, layout_, VK_SHADER_STAGE_VERTEX_BIT, 0, sizeof(push), &push);
  vkCmdDraw(commands, 36, side_ * side_, 0, 0);
  vkCmdEndRenderPass(commands);
}
