#include "runtime/transfer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/device.h"
#include "runtime/memory_barrier.h"

namespace mulciber {
namespace {

constexpr uint64_t kStagingBytes = 8ull << 20;  // per half of the ring

// Submits transfer commands once and waits.
class Transfer {
 public:
  explicit Transfer(Device& device)
      : device_(device), commands_(device.allocate_command_buffer()) {}
  ~Transfer() { device_.free_command_buffers({&commands_, 1}); }

  Ticket copy(const BufferView& from, const BufferView& to, uint64_t bytes, bool to_cpu) {
    const DeviceFunctions& vk = device_.vk();
    VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
    device_.check(vk.vkBeginCommandBuffer(commands_, &begin), "vkBeginCommandBuffer");
    constexpr VkAccessFlags kShader = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT;
    memory_barrier(vk, commands_,
                   {VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
                    kShader | VK_ACCESS_TRANSFER_WRITE_BIT},
                   {VK_PIPELINE_STAGE_TRANSFER_BIT,
                    VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT});
    VkBufferCopy region{from.offset, to.offset, bytes};
    vk.vkCmdCopyBuffer(commands_, from.buffer, to.buffer, 1, &region);
    memory_barrier(vk, commands_, {VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT},
                   to_cpu ? BarrierScope{VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT}
                          : BarrierScope{VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, kShader});
    device_.check(vk.vkEndCommandBuffer(commands_), "vkEndCommandBuffer");
    return device_.submit({&commands_, 1});
  }

 private:
  Device& device_;
  VkCommandBuffer commands_;
};

}  // namespace

// The ring has two halves: the CPU fills one while the device copies out of the other.
struct Uploader::Ring {
  struct Half {
    Buffer staging;
    std::unique_ptr<Transfer> transfer;
    Ticket ticket = 0;
  };
  Half halves[2];
  int next = 0;
};

Uploader::Uploader(Device& device) : device_(device) {}
Uploader::~Uploader() {
  try {
    finish();
  } catch (const DeviceError&) {
    // The device is lost; its next user gets the sticky error.
  }
}

void Uploader::copy(const BufferView& to, std::span<const std::byte> bytes) {
  if (bytes.size() > to.size) {
    throw ShapeError("upload",
                     fmt::format("{} bytes do not fit a range of {}", bytes.size(), to.size), "");
  }
  if (bytes.empty()) return;
  device_.require_alive();
  if (to.mapped) {
    std::memcpy(to.mapped, bytes.data(), bytes.size());
    return;
  }
  if (!ring_) ring_ = std::make_unique<Ring>();
  for (uint64_t done = 0; done < bytes.size();) {
    Ring::Half& half = ring_->halves[ring_->next];
    ring_->next ^= 1;
    if (half.transfer) device_.wait(half.ticket);
    if (!half.staging)
      half.staging = device_.memory().allocate(kStagingBytes, MemoryUsage::kStaging);
    half.transfer = std::make_unique<Transfer>(device_);
    uint64_t count = std::min<uint64_t>(kStagingBytes, bytes.size() - done);
    std::memcpy(half.staging.view().mapped, bytes.data() + done, count);
    BufferView part = to;
    part.offset += done;
    half.ticket = half.transfer->copy(half.staging.view(), part, count, false);
    done += count;
  }
}

void Uploader::finish() {
  if (!ring_) return;
  for (Ring::Half& half : ring_->halves) {
    if (half.transfer) device_.wait(half.ticket);
    half.transfer.reset();
  }
}

std::vector<std::byte> download(Device& device, const BufferView& from) {
  device.require_alive();
  std::vector<std::byte> bytes(from.size);
  if (from.mapped) {
    std::memcpy(bytes.data(), from.mapped, bytes.size());
    return bytes;
  }
  Buffer staging = device.memory().allocate(from.size, MemoryUsage::kReadback);
  Transfer transfer(device);
  device.wait(transfer.copy(from, staging.view(), from.size, true));
  std::memcpy(bytes.data(), staging.view().mapped, bytes.size());
  return bytes;
}

template <typename T>
std::vector<T> download_as(Device& device, const BufferView& from) {
  std::vector<std::byte> bytes = download(device, from);
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}
template std::vector<float> download_as<float>(Device&, const BufferView&);
template std::vector<uint32_t> download_as<uint32_t>(Device&, const BufferView&);

void upload(Device& device, const BufferView& to, std::span<const std::byte> bytes) {
  Uploader uploader(device);
  uploader.copy(to, bytes);
  uploader.finish();
}

}  // namespace mulciber
