// The render target of frames: color and depth with several samples, resolved into an image from
// which windows and files are copied.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "apps/viewer/graphics_device.h"

namespace mulciber::viewer {

class RenderTarget {
 public:
  explicit RenderTarget(GraphicsDevice& device);
  ~RenderTarget();
  RenderTarget(const RenderTarget&) = delete;
  RenderTarget& operator=(const RenderTarget&) = delete;

  /// Makes the images for an extent, unless they have it already. The device must be idle.
  void resize(VkExtent2D extent);
  /// Begins the render pass.
  void begin(VkCommandBuffer commands, const std::array<float, 3>& background) const;
  /// The pixels of the frame that was drawn last: rows of RGBA from the top. Waits.
  std::vector<uint8_t> read();

  VkRenderPass render_pass() const { return render_pass_; }
  VkExtent2D extent() const { return extent_; }
  /// The resolved image; its layout is TRANSFER_SRC_OPTIMAL behind the render pass.
  VkImage image() const { return resolved_->handle(); }

 private:
  bool multisampled() const { return device_.samples() != VK_SAMPLE_COUNT_1_BIT; }
  void make_render_pass();

  GraphicsDevice& device_;
  VkExtent2D extent_ = {};
  std::unique_ptr<Image> samples_, depth_, resolved_;
  VkRenderPass render_pass_ = VK_NULL_HANDLE;
  VkFramebuffer framebuffer_ = VK_NULL_HANDLE;
};

/// Writes a PNG file. Throws Error where it cannot be written.
void write_png(const std::string& path, VkExtent2D extent, const std::vector<uint8_t>& rgba);

}  // namespace mulciber::viewer
