#include "scene.h"

#include "graphics/pipeline.h"
#include "scene.frag.h"
#include "scene.vert.h"

namespace {

/// The layout is that of scene.vert.
struct Push {
  float turn, aspect;
  uint32_t side;
};

}  // namespace

Scene::Scene(graphics::Device& device, VkExtent2D extent, uint32_t side)
    : device_(device.handle()), target_(device), side_(side) {
  target_.resize(extent);
  const VkPushConstantRange range = {VK_SHADER_STAGE_VERTEX_BIT, 0, sizeof(Push)};
  VkPipelineLayoutCreateInfo pushes{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
  pushes.pushConstantRangeCount = 1;
  pushes.pPushConstantRanges = &range;
  graphics::check(vkCreatePipelineLayout(device_, &pushes, nullptr, &layout_),
                  "vkCreatePipelineLayout");
  pipeline_ = make_pipeline(device, target_,
                            {.vertex = scene_vert,
                             .fragment = scene_frag,
                             .layout = layout_,
                             .topology = VK_PRIMITIVE_TOPOLOGY_TRIANGLE_LIST});
}

Scene::~Scene() {
  vkDestroyPipeline(device_, pipeline_, nullptr);
  vkDestroyPipelineLayout(device_, layout_, nullptr);
}

void Scene::draw(VkCommandBuffer commands, float turn) const {
  target_.begin(commands, {0.05f, 0.05f, 0.08f});
  vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_GRAPHICS, pipeline_);
  const VkExtent2D extent = target_.extent();
  const Push push = {turn, static_cast<float>(extent.width) / static_cast<float>(extent.height),
                     side_};
  vkCmdPushConstants(commands, layout_, VK_SHADER_STAGE_VERTEX_BIT, 0, sizeof(push), &push);
  vkCmdDraw(commands, 36, side_ * side_, 0, 0);
  vkCmdEndRenderPass(commands);
}
