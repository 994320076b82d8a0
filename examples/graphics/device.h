// An application's own Vulkan device, before a network is added: an instance, a physical device,
// and one queue that draws, computes and, where there is a window, presents. A failed call throws
// DeviceError that names it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <vulkan/vulkan.h>

#include <mulciber/embedding.h>

namespace graphics {

/// Throws mulciber::DeviceError with the name of the call, unless it succeeded.
void check(VkResult result, const char* call);

/// Requirements of a window; empty without a window.
struct SurfaceNeeds {
  std::vector<const char*> instance_extensions;
  std::function<VkSurfaceKHR(VkInstance)> make_surface;
};

struct DeviceDescription {
  /// The program's, for drivers and debuggers.
  const char* application = nullptr;
  /// Index or part of the name of a physical device; "": the best, hardware before software.
  std::string name;
  /// The model that has to fit, where it is known already.
  const mulciber::OpenModel* model = nullptr;
  SurfaceNeeds surface;
};

class Device {
 public:
  explicit Device(const DeviceDescription& description);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  /// The device for mulciber::adopt_device(), with all that was enabled.
  mulciber::ApplicationDevice lent() const;

  VkInstance instance() const { return physical_.instance; }
  VkPhysicalDevice physical_device() const { return physical_.physical_device; }
  VkDevice handle() const { return device_; }
  VkQueue queue() const { return queue_; }
  uint32_t queue_family() const { return family_; }
  VkSurfaceKHR surface() const { return surface_; }
  const VkPhysicalDeviceProperties& properties() const { return properties_; }
  /// Valid bits of the queue's timestamps; 0: it has none.
  uint32_t timestamp_bits() const { return timestamp_bits_; }

  VkDeviceMemory allocate(const VkMemoryRequirements& needs, VkMemoryPropertyFlags properties);
  /// Records commands, submits them, and waits until they have ended.
  void run(const std::function<void(VkCommandBuffer)>& record);
  void wait_idle() { check(vkDeviceWaitIdle(device_), "vkDeviceWaitIdle"); }

 private:
  void choose(const std::string& name);
  void make_device(const mulciber::OpenModel* model);
  void make_commands();

  mulciber::ApplicationPhysicalDevice physical_;
  VkPhysicalDeviceProperties properties_ = {};
  mulciber::Requirements asked_;
  std::vector<std::string> enabled_extensions_;
  VkSurfaceKHR surface_ = VK_NULL_HANDLE;
  VkDevice device_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
  uint32_t family_ = 0, timestamp_bits_ = 0;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
  VkFence fence_ = VK_NULL_HANDLE;
};

}  // namespace graphics
