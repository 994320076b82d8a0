#include "conformance/background_load.h"

#include <optional>

#include "runtime/memory_barrier.h"

namespace mulciber::conformance {
namespace {

// Each submission fills and copies this much several times, which takes longer than the submission
// itself and less than any watchdog allows.
constexpr VkDeviceSize kHalfBytes = 16 << 20;
constexpr int kRounds = 8;
constexpr uint64_t kWaitNanoseconds = 10'000'000'000;

}  // namespace

BackgroundLoad::BackgroundLoad(Device& device, VkQueue queue, uint32_t family)
    : device_(device), queue_(queue), family_(family) {
  if (!queue) return;
  try {
    make_buffer();
    record();
  } catch (...) {
    destroy();
    throw;
  }
  thread_ = std::thread([this] { run(); });
}

BackgroundLoad::~BackgroundLoad() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
  destroy();
}

void BackgroundLoad::destroy() {
  const DeviceFunctions& vk = device_.vk();
  if (fence_) vk.vkDestroyFence(device_.handle(), fence_, nullptr);
  if (pool_) vk.vkDestroyCommandPool(device_.handle(), pool_, nullptr);
  if (buffer_) vk.vkDestroyBuffer(device_.handle(), buffer_, nullptr);
  if (memory_) vk.vkFreeMemory(device_.handle(), memory_, nullptr);
}

// The buffer has its own memory, because the allocator's blocks belong to the first queue's family.
void BackgroundLoad::make_buffer() {
  const DeviceFunctions& vk = device_.vk();
  VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
  info.size = 2 * kHalfBytes;
  info.usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  info.sharingMode = VK_SHARING_MODE_EXCLUSIVE;
  device_.check(vk.vkCreateBuffer(device_.handle(), &info, nullptr, &buffer_), "vkCreateBuffer");
  VkMemoryRequirements needs;
  vk.vkGetBufferMemoryRequirements(device_.handle(), buffer_, &needs);
  VkPhysicalDeviceMemoryProperties properties;
  device_.instance_vk().vkGetPhysicalDeviceMemoryProperties(device_.physical(), &properties);
  std::optional<uint32_t> type;
  for (uint32_t i = 0; i < properties.memoryTypeCount; ++i) {
    const VkMemoryPropertyFlags flags = properties.memoryTypes[i].propertyFlags;
    const bool local = flags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
    // Only plain memory types: protected or AMD's device-coherent memory needs features that are
    // not enabled.
    const bool plain = !(flags & ~VkMemoryPropertyFlags(0xf));
    if ((needs.memoryTypeBits >> i & 1) && plain && (local || !type)) {
      type = i;
      if (local) break;
    }
  }
  if (!type)
    throw DeviceError(DeviceError::Kind::kFailed, "second queue",
                      "no memory type for a plain buffer");
  VkMemoryAllocateInfo allocation{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
  allocation.allocationSize = needs.size;
  allocation.memoryTypeIndex = *type;
  device_.check(vk.vkAllocateMemory(device_.handle(), &allocation, nullptr, &memory_),
                "vkAllocateMemory");
  device_.check(vk.vkBindBufferMemory(device_.handle(), buffer_, memory_, 0), "vkBindBufferMemory");
}

void BackgroundLoad::record() {
  const DeviceFunctions& vk = device_.vk();
  VkCommandPoolCreateInfo pool{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  pool.queueFamilyIndex = family_;
  device_.check(vk.vkCreateCommandPool(device_.handle(), &pool, nullptr, &pool_),
                "vkCreateCommandPool");
  VkCommandBufferAllocateInfo allocation{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
  allocation.commandPool = pool_;
  allocation.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  allocation.commandBufferCount = 1;
  device_.check(vk.vkAllocateCommandBuffers(device_.handle(), &allocation, &commands_),
                "vkAllocateCommandBuffers");
  VkFenceCreateInfo fence{VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
  device_.check(vk.vkCreateFence(device_.handle(), &fence, nullptr, &fence_), "vkCreateFence");

  VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  device_.check(vk.vkBeginCommandBuffer(commands_, &begin), "vkBeginCommandBuffer");
  for (int round = 0; round < kRounds; ++round) {
    auto wait = [&] {
      memory_barrier(vk, commands_, {VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT},
                     {VK_PIPELINE_STAGE_TRANSFER_BIT,
                      VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT});
    };
    wait();
    vk.vkCmdFillBuffer(commands_, buffer_, 0, kHalfBytes, 0x9e3779b9u * (round + 1));
    wait();
    const VkBufferCopy copy{0, kHalfBytes, kHalfBytes};
    vk.vkCmdCopyBuffer(commands_, buffer_, buffer_, 1, &copy);
  }
  device_.check(vk.vkEndCommandBuffer(commands_), "vkEndCommandBuffer");
}

// Only this thread uses the queue. A failure ends the load: if the device is lost, the running case
// notices that itself.
void BackgroundLoad::run() {
  const DeviceFunctions& vk = device_.vk();
  VkSubmitInfo submission{VK_STRUCTURE_TYPE_SUBMIT_INFO};
  submission.commandBufferCount = 1;
  submission.pCommandBuffers = &commands_;
  while (!stop_) {
    if (vk.vkQueueSubmit(queue_, 1, &submission, fence_) != VK_SUCCESS) return;
    VkResult result = VK_TIMEOUT;
    while (result == VK_TIMEOUT)
      result = vk.vkWaitForFences(device_.handle(), 1, &fence_, VK_TRUE, kWaitNanoseconds);
    if (result != VK_SUCCESS || vk.vkResetFences(device_.handle(), 1, &fence_) != VK_SUCCESS)
      return;
    ++submissions_;
  }
}

}  // namespace mulciber::conformance
