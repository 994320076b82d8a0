// An application that draws, before a network is added: an instance, a device with a queue that
// draws and computes, images, and a command buffer for the present frame.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <vulkan/vulkan.h>

#include <mulciber/embedding.h>

/// Ends the program with the name of the call.
void check(VkResult result, const char* call);

struct DrawnImage {
  VkImage image = VK_NULL_HANDLE;
  VkImageView view = VK_NULL_HANDLE;
  VkFormat format = VK_FORMAT_UNDEFINED;
  VkExtent2D extent = {};
};

/// Memory that the CPU reads.
struct ReadBuffer {
  VkBuffer buffer = VK_NULL_HANDLE;
  void* mapped = nullptr;
};

class DrawingApplication {
 public:
  /// The first physical device. Ends the program where the model does not fit it, or no queue
  /// family both draws and computes.
  explicit DrawingApplication(const mulciber::OpenModel& model);
  ~DrawingApplication();
  DrawingApplication(const DrawingApplication&) = delete;

  /// The device for mulciber::adopt_device(), with all that was enabled.
  mulciber::ApplicationDevice lent() const;

  /// Begins the frame's command buffer. There is one frame at a time.
  VkCommandBuffer begin();
  /// Submits the command buffer, and waits until it has ended.
  void submit_and_wait();

  DrawnImage make_image(VkExtent2D extent, VkFormat format, VkImageUsageFlags usage);
  ReadBuffer make_read_buffer(VkDeviceSize bytes);
  VkShaderModule make_shader(std::span<const uint32_t> code);
  /// Adds a call before the device is destroyed; the last added is called first.
  void at_end(std::function<void()> destroy) { at_end_.push_back(std::move(destroy)); }
  /// Copies an image of 4 bytes a texel whose layout is TRANSFER_SRC_OPTIMAL, and waits.
  std::vector<uint8_t> read(const DrawnImage& image);

  VkPhysicalDevice physical_device() const { return physical_.physical_device; }
  VkDevice device() const { return device_; }
  VkQueue queue() const { return queue_; }

 private:
  VkDeviceMemory allocate(const VkMemoryRequirements& needs, VkMemoryPropertyFlags properties);

  mulciber::ApplicationPhysicalDevice physical_;
  mulciber::Requirements asked_;
  VkDevice device_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
  uint32_t family_ = 0;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
  VkFence fence_ = VK_NULL_HANDLE;
  std::vector<std::function<void()>> at_end_;
};

/// Writes a binary PPM file of texels in RGBA.
void write_ppm(const std::string& path, VkExtent2D extent, std::span<const uint8_t> rgba);
