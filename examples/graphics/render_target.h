// The render target of frames: color and depth, with several samples resolved into an image from
// which windows and files are copied.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "image.h"

namespace graphics {

class RenderTarget {
 public:
  /// samples: used where the device supports them for color and depth; otherwise 1.
  explicit RenderTarget(Device& device, VkSampleCountFlagBits samples = VK_SAMPLE_COUNT_1_BIT);
  ~RenderTarget();
  RenderTarget(const RenderTarget&) = delete;
  RenderTarget& operator=(const RenderTarget&) = delete;

  /// Makes the images for an extent, unless they have it already. The device must be idle.
  void resize(VkExtent2D extent);
  /// Begins the render pass, with the whole image as viewport and scissor.
  void begin(VkCommandBuffer commands, const std::array<float, 3>& background) const;
  /// The pixels of the frame that was drawn last: rows of RGBA from the top. Waits.
  std::vector<uint8_t> read() const;

  VkRenderPass render_pass() const { return render_pass_; }
  VkSampleCountFlagBits samples() const { return samples_; }
  VkExtent2D extent() const { return extent_; }
  /// The resolved image; its layout is TRANSFER_SRC_OPTIMAL behind the render pass.
  VkImage image() const { return resolved_->handle(); }

 private:
  bool resolves() const { return samples_ != VK_SAMPLE_COUNT_1_BIT; }
  void make_render_pass();

  Device& device_;
  VkSampleCountFlagBits samples_ = VK_SAMPLE_COUNT_1_BIT;
  VkFormat depth_format_ = VK_FORMAT_D32_SFLOAT;
  VkExtent2D extent_ = {};
  std::unique_ptr<Image> multisampled_, depth_, resolved_;
  VkRenderPass render_pass_ = VK_NULL_HANDLE;
  VkFramebuffer framebuffer_ = VK_NULL_HANDLE;
};

}  // namespace graphics
