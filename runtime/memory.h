// Device memory: few large allocations, sub-allocated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "mulciber/application_device.h"
#include "runtime/tensor.h"

namespace mulciber {

class Device;

struct MemoryBlock;

/// A range of device memory, returned to its block when destroyed.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  const BufferView& view() const { return view_; }
  uint64_t size() const { return view_.size; }
  explicit operator bool() const { return block_ != nullptr; }
  /// A dense tensor at the start of the buffer.
  Tensor tensor(Shape shape, DataType type) const;

 private:
  friend class Allocator;
  MemoryBlock* block_ = nullptr;
  BufferView view_;
  uint64_t guard_ = 0;  // bytes of guard before and after the buffer
};

/// Sub-allocates buffers from blocks of 8 to 64 MiB; a buffer of 8 MiB or more has a block of its
/// own. Blocks come from the driver, or from the application's ApplicationAllocator. Thread-safe.
class Allocator {
 public:
  explicit Allocator(Device& device);
  ~Allocator();

  /// size: bytes, rounded up to 256. Throws DeviceError (kOutOfMemory) with the sizes concerned.
  Buffer allocate(uint64_t size, MemoryUsage use);

  /// Places later buffers between guards of `bytes` (a multiple of 256) of poison
  /// (runtime/memory_guard.h), and fills the buffers with poison; 0 ends this. For tests and
  /// conformance: memory grows, and every allocation waits for a copy.
  void set_guard(uint64_t bytes) { guard_ = bytes; }
  /// Describes a write outside a living buffer that has guards ("wrote 3 bytes behind a buffer of
  /// 4,096"), or returns "". Reads the guards back: call it when the device is idle.
  std::string damage();
  /// The first guard word behind one of these buffers, where a test can write a fault; empty
  /// without guarded buffers.
  BufferView guard_word() const;

  /// Gives empty blocks back to the driver; returns their bytes.
  uint64_t trim();

  /// Bytes in use now, and the highest number so far.
  uint64_t used() const { return used_; }
  uint64_t peak() const { return peak_; }
  /// Bytes allocated from the driver now.
  uint64_t reserved() const { return reserved_; }
  /// Bytes of device memory that this process may still allocate, by VK_EXT_memory_budget or the
  /// heap sizes, and by ApplicationDevice::memory_budget.
  uint64_t available() const;

 private:
  friend class Buffer;
  /// A buffer with its guards.
  struct Guarded {
    BufferView whole;
    uint64_t before = 0, bytes = 0;
  };
  void release(MemoryBlock* block, uint64_t offset, uint64_t size);
  std::unique_ptr<MemoryBlock> create_block(uint64_t size, MemoryUsage use);
  /// Allocates memory for a block's buffer, from the driver or from the application's allocator.
  /// Throws DeviceError where the application gave something else than it said, and what its
  /// allocator throws.
  VkResult allocate_memory(MemoryBlock& block, const VkMemoryRequirements& needs);
  VkResult allocate_from_driver(MemoryBlock& block, const VkMemoryRequirements& needs);
  void destroy(MemoryBlock& block);

  Device& device_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<MemoryBlock>> blocks_;
  uint64_t used_ = 0, peak_ = 0, reserved_ = 0;
  uint64_t guard_ = 0;
  std::map<std::pair<MemoryBlock*, uint64_t>, Guarded> guarded_;  // by where the first guard begins
};

}  // namespace mulciber
