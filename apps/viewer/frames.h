// Two frames in flight: their command buffers, fences, and timestamps around the network's part and
// the drawing.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "examples/graphics/device.h"

namespace mulciber::viewer {

/// Times in milliseconds. Device times are 0 where the device has no timestamps.
struct FrameTimes {
  float network = 0, drawing = 0;  // on the device
  float frame = 0;                 // from one frame's begin to the next's
};

class Frames {
 public:
  static constexpr size_t kInFlight = 2;

  explicit Frames(graphics::Device& device);
  ~Frames();
  Frames(const Frames&) = delete;
  Frames& operator=(const Frames&) = delete;

  /// Waits for the frame before the last, whose slot the new frame takes, and begins its commands.
  VkCommandBuffer begin();
  /// Marks the end of the network's commands.
  void network_ends();
  /// Submits the frame. Semaphores may be null.
  void submit(VkSemaphore wait, VkSemaphore signal);
  /// Waits for all submitted frames.
  void wait();

  /// The slot of the frame that is being recorded.
  size_t slot() const { return slot_; }
  /// The times of the frame that begin() waited for.
  const std::optional<FrameTimes>& ended() const { return ended_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Slot {
    VkCommandBuffer commands = VK_NULL_HANDLE;
    VkFence fence = VK_NULL_HANDLE;
    bool recording = false, submitted = false;
    float frame_ms = 0;
  };

  graphics::Device& device_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkQueryPool queries_ = VK_NULL_HANDLE;
  std::array<Slot, kInFlight> slots_;
  size_t slot_ = kInFlight - 1;
  std::optional<FrameTimes> ended_;
  Clock::time_point begun_ = Clock::now();
};

}  // namespace mulciber::viewer
