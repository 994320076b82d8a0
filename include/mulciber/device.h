// Vulkan devices: which there are, opening one, and its self-test. No Vulkan headers are needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "mulciber/error.h"
#include "mulciber/export.h"

namespace mulciber {

/// An open Vulkan device, which everything that computes on it shares: one thread at a time.
class Device;

/// Of a device's queues among those of all programs.
enum class QueuePriority { kDefault, kLow, kHigh, kRealtime };

struct DeviceOptions {
  std::string device;     // index, part of a name, or "" for the best (hardware before software)
  std::string limits;     // capabilities to take away: "no-fp16,shared=16384"
  bool validate = false;  // Khronos validation layer with synchronization validation
  bool profile = false;   // time every kernel
  /// Where compiled pipelines and verdicts of self_test() are kept from process to process; made
  /// where it is not there. "": nothing is kept.
  std::string cache_folder;
  bool ignore_verdicts = false;  // use also kernels that failed their self-test on this driver
  /// Asks the driver for what it says of pipelines: registers, spills, disassembly.
  bool pipeline_statistics = false;
  bool second_queue = false;  // also open a second compute queue, where there is one
  /// What the driver does not grant (it may want rights for the higher ones) becomes the next lower
  /// one; describe() says what was granted. Of an adopted device its host decides.
  QueuePriority queue_priority = QueuePriority::kDefault;
  /// Of dispatches beside whatever else the GPU does at once, from 0 to 1: lower ones leave more of
  /// its units to drawing. 0.5 is Vulkan's own, and all there is where the driver lacks
  /// VK_NV_compute_occupancy_priority, or the host of an adopted device did not enable
  /// computeOccupancyPriority. A host's command buffer is left with 0.5 after what is recorded.
  float occupancy_priority = 0.5f;
  double submission_ms = 100;  // longest a submission is expected to keep the device busy
  /// A submission that takes longer has hung, and the device counts as lost. 0: a minute on
  /// hardware, fifteen on software, which may compile a kernel at its first dispatch.
  double hang_seconds = 0;
};

/// The options, and what the environment of this process says where they leave it open:
/// MULCIBER_DEVICE; MULCIBER_LIMITS, in addition to limits; MULCIBER_VALIDATE=1; and as
/// cache_folder MULCIBER_CACHE, XDG_CACHE_HOME/mulciber or ~/.cache/mulciber. Nothing else in the
/// library looks at the environment. Throws SettingError naming MULCIBER_LIMITS for a limit that
/// does not exist.
MULCIBER_API DeviceOptions options_from_environment(DeviceOptions options = {});

struct DeviceDescription {
  std::string name, driver;
  bool software = false;
  uint64_t memory_bytes = 0;  // device-local memory this process may use now
  // Of an open one, what was granted:
  QueuePriority queue_priority = QueuePriority::kDefault;
  float occupancy_priority = 0.5f;
};

/// Every Vulkan device of this machine, best first; the place in the list is the index that
/// DeviceOptions::device takes.
/// Throws DeviceError when there is no Vulkan loader or no driver.
MULCIBER_API std::vector<DeviceDescription> list_devices(const DeviceOptions& options = {});
/// Throws DeviceError when no device matches, naming those that are there, and SettingError for a
/// limit that does not exist.
MULCIBER_API std::shared_ptr<Device> open_device(const DeviceOptions& options = {});
MULCIBER_API DeviceDescription describe(const Device& device);

struct SelfTest {
  size_t passed = 0;                  // kernels that were tested now and computed what they should
  size_t untested = 0;                // left for the next call, for want of time
  std::vector<std::string> failures;  // "kernel: what went wrong"
};

/// Has the device compute small cases with known results, one for every kernel that it may use and
/// that was not yet tested on this driver version. What is learnt is kept in
/// DeviceOptions::cache_folder, and devices opened with that folder from then on, by any process,
/// use no kernel that failed: call it before open_device(). It takes about `seconds` when a driver
/// is new, and next to nothing later. Does nothing while another process tests, or where there is
/// no folder to write to. Throws DeviceError when no device matches.
MULCIBER_API SelfTest self_test(const DeviceOptions& options = {}, double seconds = 2);

}  // namespace mulciber
