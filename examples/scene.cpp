#include "scene.h"

#include <iterator>

#include "graphics_pipeline.h"
#include "scene.frag.h"
#include "scene.vert.h"

namespace {

/// As scene.vert declares it.
struct Push {
  float turn, aspect;
  uint32_t side;
};

/// Color and depth, cleared; color stays to be copied.
VkRenderPass make_render_pass(VkDevice device, VkFormat color, VkFormat depth) {
  VkAttachmentDescription attachments[2] = {};
  for (VkAttachmentDescription& attachment : attachments) {
    attachment.samples = VK_SAMPLE_COUNT_1_BIT;
    attachment.loadOp = VK_ATTACHMENT_LOAD_OP_CLEAR;
    attachment.stencilLoadOp = VK_ATTACHMENT_LOAD_OP_DONT_CARE;
    attachment.stencilStoreOp = VK_ATTACHMENT_STORE_OP_DONT_CARE;
  }
  attachments[0].format = color;
  attachments[0].storeOp = VK_ATTACHMENT_STORE_OP_STORE;
  attachments[0].finalLayout = VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL;
  attachments[1].format = depth;
  attachments[1].storeOp = VK_ATTACHMENT_STORE_OP_DONT_CARE;
  attachments[1].finalLayout = VK_IMAGE_LAYOUT_DEPTH_STENCIL_ATTACHMENT_OPTIMAL;
  const VkAttachmentReference color_reference = {0, VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL};
  const VkAttachmentReference depth_reference = {1,
                                                 VK_IMAGE_LAYOUT_DEPTH_STENCIL_ATTACHMENT_OPTIMAL};
  VkSubpassDescription subpass = {};
  subpass.pipelineBindPoint = VK_PIPELINE_BIND_POINT_GRAPHICS;
  subpass.colorAttachmentCount = 1;
  subpass.pColorAttachments = &color_reference;
  subpass.pDepthStencilAttachment = &depth_reference;
  constexpr VkPipelineStageFlags kTests =
      VK_PIPELINE_STAGE_EARLY_FRAGMENT_TESTS_BIT | VK_PIPELINE_STAGE_LATE_FRAGMENT_TESTS_BIT;
  constexpr VkPipelineStageFlags kDraws = VK_PIPELINE_STAGE_COLOR_ATTACHMENT_OUTPUT_BIT | kTests;
  constexpr VkAccessFlags kWrites =
      VK_ACCESS_COLOR_ATTACHMENT_WRITE_BIT | VK_ACCESS_DEPTH_STENCIL_ATTACHMENT_WRITE_BIT;
  const VkSubpassDependency dependencies[] = {
      {VK_SUBPASS_EXTERNAL, 0, kDraws | VK_PIPELINE_STAGE_TRANSFER_BIT, kDraws, kWrites,
       kWrites | VK_ACCESS_DEPTH_STENCIL_ATTACHMENT_READ_BIT, 0},
      {0, VK_SUBPASS_EXTERNAL, kDraws, VK_PIPELINE_STAGE_TRANSFER_BIT, kWrites,
       VK_ACCESS_TRANSFER_READ_BIT, 0}};
  VkRenderPassCreateInfo info{VK_STRUCTURE_TYPE_RENDER_PASS_CREATE_INFO};
  info.attachmentCount = static_cast<uint32_t>(std::size(attachments));
  info.pAttachments = attachments;
  info.subpassCount = 1;
  info.pSubpasses = &subpass;
  info.dependencyCount = static_cast<uint32_t>(std::size(dependencies));
  info.pDependencies = dependencies;
  VkRenderPass made = VK_NULL_HANDLE;
  check(vkCreateRenderPass(device, &info, nullptr, &made), "vkCreateRenderPass");
  return made;
}

}  // namespace

Scene::Scene(DrawingHost& host, VkExtent2D extent, uint32_t side) : extent_(extent), side_(side) {
  const VkDevice device = host.device();
  color_ = host.make_image(extent, VK_FORMAT_R8G8B8A8_UNORM,
                           VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT | VK_IMAGE_USAGE_TRANSFER_SRC_BIT);
  depth_ =
      host.make_image(extent, VK_FORMAT_D16_UNORM, VK_IMAGE_USAGE_DEPTH_STENCIL_ATTACHMENT_BIT);
  render_pass_ = make_render_pass(device, color_.format, depth_.format);
  const VkImageView views[] = {color_.view, depth_.view};
  VkFramebufferCreateInfo attached{VK_STRUCTURE_TYPE_FRAMEBUFFER_CREATE_INFO};
  attached.renderPass = render_pass_;
  attached.attachmentCount = 2;
  attached.pAttachments = views;
  attached.width = extent.width;
  attached.height = extent.height;
  attached.layers = 1;
  check(vkCreateFramebuffer(device, &attached, nullptr, &framebuffer_), "vkCreateFramebuffer");

  const VkPushConstantRange range = {VK_SHADER_STAGE_VERTEX_BIT, 0, sizeof(Push)};
  VkPipelineLayoutCreateInfo pushes{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
  pushes.pushConstantRangeCount = 1;
  pushes.pPushConstantRanges = &range;
  check(vkCreatePipelineLayout(device, &pushes, nullptr, &layout_), "vkCreatePipelineLayout");
  pipeline_ = make_pipeline(device, {.vertex = host.make_shader(scene_vert),
                                     .fragment = host.make_shader(scene_frag),
                                     .layout = layout_,
                                     .render_pass = render_pass_,
                                     .extent = extent,
                                     .depth = true});
  host.at_end([device, pipeline = pipeline_, layout = layout_, framebuffer = framebuffer_,
               render_pass = render_pass_] {
    vkDestroyPipeline(device, pipeline, nullptr);
    vkDestroyPipelineLayout(device, layout, nullptr);
    vkDestroyFramebuffer(device, framebuffer, nullptr);
    vkDestroyRenderPass(device, render_pass, nullptr);
  });
}

void Scene::draw(VkCommandBuffer commands, float turn) const {
  VkClearValue clear[2] = {};
  clear[0].color = {{0.05f, 0.05f, 0.08f, 1}};
  clear[1].depthStencil = {1, 0};
  VkRenderPassBeginInfo begin{VK_STRUCTURE_TYPE_RENDER_PASS_BEGIN_INFO};
  begin.renderPass = render_pass_;
  begin.framebuffer = framebuffer_;
  begin.renderArea.extent = extent_;
  begin.clearValueCount = 2;
  begin.pClearValues = clear;
  vkCmdBeginRenderPass(commands, &begin, VK_SUBPASS_CONTENTS_INLINE);
  vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_GRAPHICS, pipeline_);
  const Push push = {turn, static_cast<float>(extent_.width) / static_cast<float>(extent_.height),
                     side_};
  vkCmdPushConstants(commands, layout_, VK_SHADER_STAGE_VERTEX_BIT, 0, sizeof(push), &push);
  vkCmdDraw(commands, 36, side_ * side_, 0, 0);
  vkCmdEndRenderPass(commands);
}
