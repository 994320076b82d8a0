#include "runtime/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "runtime/buffer_part.h"
#include "runtime/device.h"
#include "runtime/memory_guard.h"
#include "runtime/transfer.h"

namespace mulciber {
namespace {

// Blocks grow with the memory in use, and large buffers have blocks of their own, so that the
// unused remainder of blocks stays small beside the used part.
constexpr uint64_t kSmallestBlock = 8ull << 20, kLargestBlock = 64ull << 20, kBlockShare = 32;
constexpr uint64_t kAlignment = 256;  // the largest offset alignment Vulkan allows

uint64_t round_up(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

bool for_cpu(MemoryUsage use) {
  return use == MemoryUsage::kStaging || use == MemoryUsage::kReadback;
}

// Memory type flags for a use, best first.
std::vector<VkMemoryPropertyFlags> preferences(MemoryUsage use, const Capabilities& c) {
  constexpr VkMemoryPropertyFlags kLocal = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
  constexpr VkMemoryPropertyFlags kHostVisible =
      VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  if (for_cpu(use)) return {kHostVisible | VK_MEMORY_PROPERTY_HOST_CACHED_BIT, kHostVisible};
  if (c.host_visible_device_memory) return {kLocal | kHostVisible, kLocal, 0};
  return {kLocal, 0};
}

}  // namespace

struct MemoryBlock {
  Allocator* owner = nullptr;
  MemoryUsage use = MemoryUsage::kActivations;
  ApplicationMemory memory;
  VkBuffer buffer = VK_NULL_HANDLE;
  uint64_t size = 0;
  uint64_t address = 0;
  std::byte* mapped = nullptr;
  std::map<uint64_t, uint64_t> free;  // offset -> bytes
};

Buffer::Buffer(Buffer&& other) noexcept
    : block_(std::exchange(other.block_, nullptr)),
      view_(std::exchange(other.view_, {})),
      guard_(std::exchange(other.guard_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(block_, other.block_);
  std::swap(view_, other.view_);
  std::swap(guard_, other.guard_);
  return *this;
}

Buffer::~Buffer() {
  if (block_)
    block_->owner->release(block_, view_.offset - guard_,
                           round_up(view_.size, kAlignment) + 2 * guard_);
}

Tensor Buffer::tensor(Shape shape, DataType type) const {
  Tensor tensor;
  tensor.shape = shape;
  tensor.type = type;
  tensor.view = view_;
  if (tensor.bytes() > view_.size) {
    throw ShapeError("buffer",
                     fmt::format("{} {} needs {} bytes, the buffer has {}", name_of(type),
                                 shape.to_string(), tensor.bytes(), view_.size),
                     "");
  }
  return tensor;
}

Allocator::Allocator(Device& device) : device_(device) {}

Allocator::~Allocator() {
  for (const auto& block : blocks_) destroy(*block);
}

void Allocator::destroy(MemoryBlock& block) {
  if (block.buffer)
    device_.vk().vkDestroyBuffer(device_.handle(), block.buffer, device_.callbacks());
  if (!block.memory.memory) return;
  if (const ApplicationAllocator& application = device_.application().allocator; application.free) {
    application.free(block.memory);
  } else {
    device_.vk().vkFreeMemory(device_.handle(), block.memory.memory, device_.callbacks());
  }
}

VkResult Allocator::allocate_memory(MemoryBlock& block, const VkMemoryRequirements& needs) {
  const ApplicationAllocator& application = device_.application().allocator;
  if (!application.allocate) return allocate_from_driver(block, needs);
  const Capabilities& c = device_.capabilities();
  const std::vector<VkMemoryPropertyFlags> wanted = preferences(block.use, c);
  const VkResult result = application.allocate({.buffer = block.buffer,
                                                .requirements = needs,
                                                .usage = block.use,
                                                .required = wanted.back(),
                                                .preferred = wanted.front(),
                                                .device_address = c.has(kBufferAddress),
                                                .priority = device_.application().memory_priority},
                                               &block.memory);
  if (result != VK_SUCCESS) return result;
  if (!block.memory.memory)
    throw DeviceError(DeviceError::Kind::kFailed, "ApplicationAllocator::allocate",
                      fmt::format("gave no memory for {} bytes, and VK_SUCCESS", needs.size),
                      "set ApplicationMemory::memory, or return an error");
  if ((wanted.back() & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) && !block.memory.mapped)
    throw DeviceError(
        DeviceError::Kind::kFailed, "ApplicationAllocator::allocate",
        fmt::format("gave {} bytes that the CPU uses without a mapped address", needs.size),
        "map memory whose `required` has HOST_VISIBLE, and set "
        "ApplicationMemory::mapped");
  return result;
}

VkResult Allocator::allocate_from_driver(MemoryBlock& block, const VkMemoryRequirements& needs) {
  const DeviceFunctions& vk = device_.vk();
  const Capabilities& c = device_.capabilities();
  VkPhysicalDeviceMemoryProperties memory;
  device_.instance_vk().vkGetPhysicalDeviceMemoryProperties(device_.physical(), &memory);
  VkMemoryAllocateFlagsInfo flags{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO};
  flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
  VkMemoryAllocateInfo allocate{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
  if (c.has(kBufferAddress)) allocate.pNext = &flags;
  VkMemoryPriorityAllocateInfoEXT priority{VK_STRUCTURE_TYPE_MEMORY_PRIORITY_ALLOCATE_INFO_EXT};
  priority.priority = device_.application().memory_priority;
  if (c.memory_priority) priority.pNext = std::exchange(allocate.pNext, &priority);
  allocate.allocationSize = needs.size;
  VkResult result = VK_ERROR_OUT_OF_DEVICE_MEMORY;
  for (const VkMemoryPropertyFlags wanted : preferences(block.use, c)) {
    for (uint32_t i = 0; i < memory.memoryTypeCount; ++i) {
      const VkMemoryPropertyFlags has = memory.memoryTypes[i].propertyFlags;
      if (!(needs.memoryTypeBits & (1u << i)) || (has & wanted) != wanted) continue;
      allocate.memoryTypeIndex = i;
      result = vk.vkAllocateMemory(device_.handle(), &allocate, device_.callbacks(),
                                   &block.memory.memory);
      if (result == VK_ERROR_DEVICE_LOST) return result;
      if (result != VK_SUCCESS) continue;
      const bool wants_host_visible = for_cpu(block.use) || c.host_visible_device_memory;
      if (!wants_host_visible || !(has & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) ||
          !(has & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT)) {
        return VK_SUCCESS;
      }
      const VkResult mapped = vk.vkMapMemory(device_.handle(), block.memory.memory, 0,
                                             VK_WHOLE_SIZE, 0, &block.memory.mapped);
      // Buffers in device memory work without a mapping; staging and readback buffers need one.
      return for_cpu(block.use) ? mapped : VK_SUCCESS;
    }
  }
  return result;
}

uint64_t Allocator::available() const {
  uint64_t budget = device_.capabilities().device_memory();
  if (const uint64_t limit = device_.application().memory_budget; limit > 0)
    budget = std::min(budget, limit);
  std::lock_guard lock(mutex_);
  return budget > used_ ? budget - used_ : 0;
}

std::unique_ptr<MemoryBlock> Allocator::create_block(uint64_t size, MemoryUsage use) {
  const DeviceFunctions& vk = device_.vk();
  const Capabilities& c = device_.capabilities();
  if (c.max_allocation != 0 && size > c.max_allocation) {
    throw DeviceError(DeviceError::Kind::kOutOfMemory, c.name,
                      fmt::format("one allocation of {} bytes was asked for, the device allows {}",
                                  size, c.max_allocation),
                      "use a smaller model or batch");
  }
  if (const uint64_t budget = device_.application().memory_budget;
      budget > 0 && !for_cpu(use) && reserved_ + size > budget) {
    throw DeviceError(DeviceError::Kind::kOutOfMemory, c.name,
                      fmt::format("{} bytes more than the {} in use would pass the budget of {}",
                                  size, reserved_, budget),
                      "use a smaller model or batch, or give a larger budget");
  }
  auto block = std::make_unique<MemoryBlock>();
  block->owner = this;
  block->use = use;
  block->size = size;
  VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
  info.size = size;
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
               VK_BUFFER_USAGE_TRANSFER_DST_BIT | VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT;
  if (c.has(kBufferAddress)) info.usage |= VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
  if (c.has(kTexelLoads)) info.usage |= VK_BUFFER_USAGE_UNIFORM_TEXEL_BUFFER_BIT;
  device_.check(vk.vkCreateBuffer(device_.handle(), &info, device_.callbacks(), &block->buffer),
                "vkCreateBuffer");

  VkMemoryRequirements needs;
  vk.vkGetBufferMemoryRequirements(device_.handle(), block->buffer, &needs);
  VkResult result = VK_SUCCESS;
  try {
    result = allocate_memory(*block, needs);
  } catch (...) {
    destroy(*block);
    throw;
  }
  if (result == VK_SUCCESS) {
    result = vk.vkBindBufferMemory(device_.handle(), block->buffer, block->memory.memory,
                                   block->memory.offset);
  }
  if (result != VK_SUCCESS) {
    destroy(*block);
    if (result != VK_ERROR_OUT_OF_DEVICE_MEMORY && result != VK_ERROR_OUT_OF_HOST_MEMORY)
      device_.check(result, "allocating memory");
    throw DeviceError(
        DeviceError::Kind::kOutOfMemory, c.name,
        fmt::format("could not allocate {:.1f} MiB of {} memory; {:.1f} MiB are in use",
                    static_cast<double>(size) / 1048576, for_cpu(use) ? "host-visible" : "device",
                    static_cast<double>(used_) / 1048576),
        "use a smaller model or batch, or a device with more memory");
  }
  block->mapped = static_cast<std::byte*>(block->memory.mapped);
  if (c.has(kBufferAddress)) {
    VkBufferDeviceAddressInfo address{VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO};
    address.buffer = block->buffer;
    block->address = vk.vkGetBufferDeviceAddress(device_.handle(), &address);
  }
  block->free[0] = size;
  reserved_ += size;
  return block;
}

Buffer Allocator::allocate(uint64_t size, MemoryUsage use) {
  device_.require_alive();
  std::unique_lock lock(mutex_);
  const uint64_t guard = guard_,
                 rounded = round_up(std::max<uint64_t>(size, 1), kAlignment) + 2 * guard;
  MemoryBlock* block = nullptr;
  std::map<uint64_t, uint64_t>::iterator gap;
  for (const auto& candidate : blocks_) {
    if (candidate->use != use || block) continue;
    for (auto it = candidate->free.begin(); it != candidate->free.end(); ++it) {
      if (it->second < rounded) continue;
      block = candidate.get();
      gap = it;
      break;
    }
  }
  if (!block) {
    const uint64_t block_bytes =
        std::clamp(round_up(used_ / kBlockShare, kSmallestBlock), kSmallestBlock, kLargestBlock);
    blocks_.push_back(create_block(rounded >= kSmallestBlock ? rounded : block_bytes, use));
    block = blocks_.back().get();
    gap = block->free.begin();
  }
  auto [offset, bytes] = *gap;
  block->free.erase(gap);
  if (bytes > rounded) block->free[offset + rounded] = bytes - rounded;
  used_ += rounded;
  peak_ = std::max(peak_, used_);
  ++device_.counters().allocations;

  Buffer buffer;
  buffer.block_ = block;
  buffer.view_ = {block->buffer, offset, size, block->address ? block->address + offset : 0,
                  block->mapped ? block->mapped + offset : nullptr};
  if (guard > 0) {
    const BufferView whole = part_of(buffer.view_, 0, rounded);
    buffer.view_ = part_of(whole, guard, size);
    buffer.guard_ = guard;
    guarded_[{block, offset}] = {whole, guard, size};
    lock.unlock();
    upload(device_, whole, poison(rounded));
  }
  return buffer;
}

std::string Allocator::damage() {
  std::vector<Guarded> buffers;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [place, guarded] : guarded_) buffers.push_back(guarded);
  }
  for (const Guarded& g : buffers) {
    const std::vector<std::byte> before = download(device_, part_of(g.whole, 0, g.before));
    for (uint64_t at = g.before; at-- > 0;) {
      if (before[at] != poison_byte(at)) {
        return fmt::format("wrote {} bytes before a buffer of {}", g.before - at, g.bytes);
      }
    }
    // 16-bit numbers share a word in pairs, so a buffer owns the whole of its last word.
    const uint64_t end = g.before + round_up(g.bytes, 4);
    const std::vector<std::byte> behind =
        download(device_, part_of(g.whole, end, g.whole.size - end));
    for (uint64_t at = 0; at < behind.size(); ++at) {
      if (behind[at] != poison_byte(at))
        return fmt::format("wrote {} bytes behind a buffer of {}", at, g.bytes);
    }
  }
  return "";
}

BufferView Allocator::guard_word() const {
  std::lock_guard lock(mutex_);
  if (guarded_.empty()) return {};
  const Guarded& g = guarded_.begin()->second;
  return part_of(g.whole, g.before + round_up(g.bytes, 4), 4);
}

void Allocator::release(MemoryBlock* block, uint64_t offset, uint64_t size) {
  std::lock_guard lock(mutex_);
  size = std::max(size, kAlignment);
  guarded_.erase({block, offset});
  used_ -= size;
  auto next = block->free.upper_bound(offset);
  if (next != block->free.begin()) {
    auto previous = std::prev(next);
    if (previous->first + previous->second == offset) {
      offset = previous->first;
      size += previous->second;
      block->free.erase(previous);
    }
  }
  if (next != block->free.end() && offset + size == next->first) {
    size += next->second;
    block->free.erase(next);
  }
  block->free[offset] = size;
  // An empty block goes back to the driver unless it is the only empty one of its use, which keeps
  // alternating use cheap.
  if (size != block->size) return;
  auto empty = [&](const auto& b) {
    return b->use == block->use && b->free.size() == 1 && b->free.begin()->second == b->size;
  };
  if (std::count_if(blocks_.begin(), blocks_.end(), empty) < 2) return;
  destroy(*block);
  reserved_ -= block->size;
  blocks_.erase(std::find_if(blocks_.begin(), blocks_.end(),
                             [&](const auto& b) { return b.get() == block; }));
}

uint64_t Allocator::trim() {
  std::lock_guard lock(mutex_);
  uint64_t freed = 0;
  std::erase_if(blocks_, [&](const auto& block) {
    if (block->free.size() != 1 || block->free.begin()->second != block->size) return false;
    freed += block->size;
    destroy(*block);
    return true;
  });
  reserved_ -= freed;
  return freed;
}

std::vector<std::byte> poison(uint64_t bytes) {
  std::vector<std::byte> filled(bytes);
  for (uint64_t at = 0; at < bytes; ++at) filled[at] = poison_byte(at);
  return filled;
}

}  // namespace mulciber
