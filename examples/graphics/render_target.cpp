#include "render_target.h"

#include <iterator>

#include "buffer.h"

namespace graphics {
namespace {

constexpr VkFormat kColor = VK_FORMAT_R8G8B8A8_UNORM;

}  // namespace

RenderTarget::RenderTarget(Device& device, VkSampleCountFlagBits samples) : device_(device) {
  const VkPhysicalDeviceLimits& limits = device.properties().limits;
  if (limits.framebufferColorSampleCounts & limits.framebufferDepthSampleCounts & samples)
    samples_ = samples;
  VkFormatProperties depth;
  vkGetPhysicalDeviceFormatProperties(device.physical_device(), depth_format_, &depth);
  if (!(depth.optimalTilingFeatures & VK_FORMAT_FEATURE_DEPTH_STENCIL_ATTACHMENT_BIT))
    depth_format_ = VK_FORMAT_X8_D24_UNORM_PACK32;  // every device supports one of the two formats
  make_render_pass();
}

RenderTarget::~RenderTarget() {
  vkDestroyFramebuffer(device_.handle(), framebuffer_, nullptr);
  vkDestroyRenderPass(device_.handle(), render_pass_, nullptr);
}

void RenderTarget::make_render_pass() {
  VkAttachmentDescription attachments[3] = {};  // color, depth, and the resolved image
  for (VkAttachmentDescription& attachment : attachments) {
    attachment.format = kColor;
    attachment.samples = samples_;
    attachment.loadOp = VK_ATTACHMENT_LOAD_OP_CLEAR;
    attachment.storeOp = VK_ATTACHMENT_STORE_OP_DONT_CARE;
    attachment.stencilLoadOp = VK_ATTACHMENT_LOAD_OP_DONT_CARE;
    attachment.stencilStoreOp = VK_ATTACHMENT_STORE_OP_DONT_CARE;
    attachment.finalLayout = VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL;
  }
  attachments[1].format = depth_format_;
  attachments[1].finalLayout = VK_IMAGE_LAYOUT_DEPTH_STENCIL_ATTACHMENT_OPTIMAL;
  attachments[2].samples = VK_SAMPLE_COUNT_1_BIT;
  attachments[2].loadOp = VK_ATTACHMENT_LOAD_OP_DONT_CARE;
  VkAttachmentDescription& kept = attachments[resolves() ? 2 : 0];
  kept.storeOp = VK_ATTACHMENT_STORE_OP_STORE;
  kept.finalLayout = VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL;
  const VkAttachmentReference color = {0, VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL};
  const VkAttachmentReference depth = {1, VK_IMAGE_LAYOUT_DEPTH_STENCIL_ATTACHMENT_OPTIMAL};
  const VkAttachmentReference resolved = {2, VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL};
  VkSubpassDescription subpass = {};
  subpass.pipelineBindPoint = VK_PIPELINE_BIND_POINT_GRAPHICS;
  subpass.colorAttachmentCount = 1;
  subpass.pColorAttachments = &color;
  subpass.pDepthStencilAttachment = &depth;
  if (resolves()) subpass.pResolveAttachments = &resolved;
  constexpr VkPipelineStageFlags kTests =
      VK_PIPELINE_STAGE_EARLY_FRAGMENT_TESTS_BIT | VK_PIPELINE_STAGE_LATE_FRAGMENT_TESTS_BIT;
  constexpr VkPipelineStageFlags kDraws = VK_PIPELINE_STAGE_COLOR_ATTACHMENT_OUTPUT_BIT | kTests;
  constexpr VkAccessFlags kWrites =
      VK_ACCESS_COLOR_ATTACHMENT_WRITE_BIT | VK_ACCESS_DEPTH_STENCIL_ATTACHMENT_WRITE_BIT;
  constexpr VkAccessFlags kReads =
      VK_ACCESS_COLOR_ATTACHMENT_READ_BIT | VK_ACCESS_DEPTH_STENCIL_ATTACHMENT_READ_BIT;
  // The frame before this one uses the same images, and its copy reads them.
  const VkSubpassDependency dependencies[] = {
      {VK_SUBPASS_EXTERNAL, 0, kDraws | VK_PIPELINE_STAGE_TRANSFER_BIT, kDraws,
       kWrites | VK_ACCESS_TRANSFER_READ_BIT, kWrites | kReads, 0},
      {0, VK_SUBPASS_EXTERNAL, kDraws, VK_PIPELINE_STAGE_TRANSFER_BIT, kWrites,
       VK_ACCESS_TRANSFER_READ_BIT, 0}};
  VkRenderPassCreateInfo info{VK_STRUCTURE_TYPE_RENDER_PASS_CREATE_INFO};
  info.attachmentCount = resolves() ? 3 : 2;
  info.pAttachments = attachments;
  info.subpassCount = 1;
  info.pSubpasses = &subpass;
  info.dependencyCount = static_cast<uint32_t>(std::size(dependencies));
  info.pDependencies = dependencies;
  check(vkCreateRenderPass(device_.handle(), &info, nullptr, &render_pass_), "vkCreateRenderPass");
}

void RenderTarget::resize(VkExtent2D extent) {
  if (extent.width == extent_.width && extent.height == extent_.height) return;
  extent_ = extent;
  vkDestroyFramebuffer(device_.handle(), framebuffer_, nullptr);
  framebuffer_ = VK_NULL_HANDLE;
  resolved_ = std::make_unique<Image>(
      device_, ImageDescription{
                   .extent = extent,
                   .format = kColor,
                   .usage = VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT | VK_IMAGE_USAGE_TRANSFER_SRC_BIT});
  depth_ = std::make_unique<Image>(
      device_, ImageDescription{.extent = extent,
                                .format = depth_format_,
                                .usage = VK_IMAGE_USAGE_DEPTH_STENCIL_ATTACHMENT_BIT,
                                .samples = samples_});
  VkImageView views[3] = {resolved_->view(), depth_->view(), resolved_->view()};
  if (resolves()) {
    multisampled_ = std::make_unique<Image>(
        device_, ImageDescription{.extent = extent,
                                  .format = kColor,
                                  .usage = VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT |
                                           VK_IMAGE_USAGE_TRANSIENT_ATTACHMENT_BIT,
                                  .samples = samples_});
    views[0] = multisampled_->view();
  }
  VkFramebufferCreateInfo info{VK_STRUCTURE_TYPE_FRAMEBUFFER_CREATE_INFO};
  info.renderPass = render_pass_;
  info.attachmentCount = resolves() ? 3 : 2;
  info.pAttachments = views;
  info.width = extent.width;
  info.height = extent.height;
  info.layers = 1;
  check(vkCreateFramebuffer(device_.handle(), &info, nullptr, &framebuffer_),
        "vkCreateFramebuffer");
}

void RenderTarget::begin(VkCommandBuffer commands, const std::array<float, 3>& background) const {
  VkClearValue clear[2] = {};
  clear[0].color = {{background[0], background[1], background[2], 1}};
  clear[1].depthStencil = {1, 0};
  VkRenderPassBeginInfo info{VK_STRUCTURE_TYPE_RENDER_PASS_BEGIN_INFO};
  info.renderPass = render_pass_;
  info.framebuffer = framebuffer_;
  info.renderArea.extent = extent_;
  info.clearValueCount = 2;
  info.pClearValues = clear;
  vkCmdBeginRenderPass(commands, &info, VK_SUBPASS_CONTENTS_INLINE);
  const VkViewport whole = {
      0, 0, static_cast<float>(extent_.width), static_cast<float>(extent_.height), 0, 1};
  vkCmdSetViewport(commands, 0, 1, &whole);
  vkCmdSetScissor(commands, 0, 1, &info.renderArea);
}

std::vector<uint8_t> RenderTarget::read() const {
  const VkDeviceSize bytes = VkDeviceSize{4} * extent_.width * extent_.height;
  const Buffer to(device_, bytes, VK_BUFFER_USAGE_TRANSFER_DST_BIT);
  device_.run([&](VkCommandBuffer commands) {
    VkBufferImageCopy region = {};
    region.imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1};
    region.imageExtent = {extent_.width, extent_.height, 1};
    vkCmdCopyImageToBuffer(commands, image(), VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, to.handle(), 1,
                           &region);
    VkMemoryBarrier barrier{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
    barrier.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
    barrier.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
    vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1,
                         &barrier, 0, nullptr, 0, nullptr);
  });
  const auto* first = to.mapped<uint8_t>();
  return {first, first + bytes};
}

}  // namespace graphics
