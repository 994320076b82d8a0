// The one Vulkan device of the program, with the one queue that draws and computes, and its
// resources. A failed call throws DeviceError that names it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <vulkan/vulkan.h>

#include <mulciber/embedding.h>

namespace mulciber::viewer {

void check(VkResult result, const char* call);

/// Requirements of a window; empty without a window.
struct SurfaceNeeds {
  std::vector<const char*> instance_extensions;
  std::function<VkSurfaceKHR(VkInstance)> make_surface;
};

class GraphicsDevice {
 public:
  /// name: index or part of the name of a physical device, "": the best, hardware before software.
  explicit GraphicsDevice(const std::string& name, const SurfaceNeeds& needs = {});
  ~GraphicsDevice();
  GraphicsDevice(const GraphicsDevice&) = delete;
  GraphicsDevice& operator=(const GraphicsDevice&) = delete;

  /// The device for adopt_device() and requirements(): with all that was enabled.
  ApplicationDevice lent() const;

  VkInstance instance() const { return physical_.instance; }
  VkPhysicalDevice physical_device() const { return physical_.physical_device; }
  VkDevice handle() const { return device_; }
  VkQueue queue() const { return queue_; }
  uint32_t queue_family() const { return family_; }
  VkSurfaceKHR surface() const { return surface_; }
  const VkPhysicalDeviceProperties& properties() const { return properties_; }
  /// Valid bits of the queue's timestamps; 0: it has none.
  uint32_t timestamp_bits() const { return timestamp_bits_; }
  /// 4 where color and depth support 4 samples, otherwise 1.
  VkSampleCountFlagBits samples() const { return samples_; }
  VkFormat depth_format() const { return depth_format_; }

  VkDeviceMemory allocate(const VkMemoryRequirements& needs, VkMemoryPropertyFlags properties);
  /// Records commands, submits them and waits.
  void run(const std::function<void(VkCommandBuffer)>& record);
  void wait_idle() { check(vkDeviceWaitIdle(device_), "vkDeviceWaitIdle"); }

 private:
  void choose(const std::string& name);
  void make_device();

  ApplicationPhysicalDevice physical_;
  VkPhysicalDeviceProperties properties_ = {};
  Requirements asked_;
  std::vector<std::string> enabled_extensions_;
  VkSurfaceKHR surface_ = VK_NULL_HANDLE;
  VkDevice device_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
  uint32_t family_ = 0, timestamp_bits_ = 0;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkSampleCountFlagBits samples_ = VK_SAMPLE_COUNT_1_BIT;
  VkFormat depth_format_ = VK_FORMAT_D32_SFLOAT;
};

struct ImageDescription {
  VkExtent2D extent = {};
  VkFormat format = VK_FORMAT_UNDEFINED;
  VkImageUsageFlags usage = 0;
  VkSampleCountFlagBits samples = VK_SAMPLE_COUNT_1_BIT;
  uint32_t layers = 1;
  bool array = false;  // its view has layers, even if there is only one
};

class Image {
 public:
  Image(GraphicsDevice& device, const ImageDescription& description);
  ~Image();
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;

  VkImage handle() const { return image_; }
  VkImageView view() const { return view_; }
  const ImageDescription& description() const { return description_; }

 private:
  VkDevice device_;
  ImageDescription description_;
  VkImage image_ = VK_NULL_HANDLE;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
  VkImageView view_ = VK_NULL_HANDLE;
};

/// A buffer in host-visible memory that stays mapped.
class Buffer {
 public:
  Buffer(GraphicsDevice& device, VkDeviceSize bytes, VkBufferUsageFlags usage);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  VkBuffer handle() const { return buffer_; }
  VkDeviceSize size() const { return size_; }
  template <class T>
  T* mapped() const {
    return static_cast<T*>(mapped_);
  }

 private:
  VkDevice device_;
  VkDeviceSize size_;
  VkBuffer buffer_ = VK_NULL_HANDLE;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
  void* mapped_ = nullptr;
};

}  // namespace mulciber::viewer
