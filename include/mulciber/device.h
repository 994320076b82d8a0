// Vulkan devices: listing, opening and self-test. No Vulkan headers are needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "mulciber/error.h"
#include "mulciber/export.h"

namespace mulciber {

/// An open Vulkan device. All objects on it share it: only one thread may use it at a time.
class Device;

/// Priority of a device's queues among the queues of all programs.
enum class QueuePriority { kDefault, kLow, kHigh, kRealtime };

struct DeviceOptions {
  std::string device;     // index, part of a name, or "" for the best (hardware before software)
  std::string limits;     // capabilities to leave unused: "no-fp16,shared=16384"
  bool validate = false;  // Khronos validation layer with synchronization validation
  bool profile = false;   // time every kernel
  /// Folder in which compiled pipelines and verdicts of self_test() persist; created if missing.
  /// "": nothing is stored.
  std::string cache_folder;
  bool ignore_verdicts = false;  // also use kernels that failed their self-test on this driver
  /// Ask the driver for pipeline statistics: registers, spills, disassembly.
  bool pipeline_statistics = false;
  bool second_queue = false;  // also open a second compute queue, if there is one
  /// Requested queue priority. A priority that the driver refuses (higher ones may need rights)
  /// becomes the next lower one; describe() returns the granted one. The application chooses it for
  /// an adopted device.
  QueuePriority queue_priority = QueuePriority::kDefault;
  /// Priority of dispatches over other work that the GPU runs concurrently, 0 to 1: lower values
  /// leave more of its units to drawing. Vulkan's default is 0.5, and it is the only value where
  /// the driver lacks VK_NV_compute_occupancy_priority or the application did not enable
  /// computeOccupancyPriority on an adopted device. Recording into an application's command buffer
  /// leaves it at 0.5.
  float occupancy_priority = 0.5f;
  double submission_ms = 100;  // longest expected duration of a submission
  /// A submission that takes longer counts as hung, and the device as lost. 0: one minute on
  /// hardware, fifteen on software drivers, which may compile a kernel at its first dispatch.
  double hang_seconds = 0;
  /// Name the dispatches of each layer for RenderDoc, Nsight and other debuggers, by labels of
  /// VK_EXT_debug_utils such as "decode step: decoder.layers.0": costs CPU time in every recorded
  /// command buffer. Has no effect where the extension is not enabled on the instance; a device
  /// that the library opens enables it.
  bool debug_labels = false;
};

/// Returns the options, completed from the environment of this process: MULCIBER_DEVICE;
/// MULCIBER_LIMITS, in addition to limits; MULCIBER_VALIDATE=1; MULCIBER_DEBUG_LABELS=1; and for
/// cache_folder MULCIBER_CACHE, XDG_CACHE_HOME/mulciber or ~/.cache/mulciber. No other function of
/// the library reads the environment. Throws SettingError naming MULCIBER_LIMITS for a limit that
/// does not exist.
MULCIBER_API DeviceOptions options_from_environment(DeviceOptions options = {});

enum class DeviceKind { kDiscrete, kIntegrated, kVirtual, kSoftware };

struct DeviceDescription {
  std::string name, driver;
  bool software = false;
  uint64_t memory_bytes = 0;  // device-local memory this process may use now
  // Granted priorities, where the device is open:
  QueuePriority queue_priority = QueuePriority::kDefault;
  float occupancy_priority = 0.5f;
  DeviceKind kind = DeviceKind::kVirtual;
  uint32_t api_version = 0;  // of Vulkan in use, packed as VK_MAKE_API_VERSION does
};

/// Lists every Vulkan device of this machine, best first. DeviceOptions::device takes an index into
/// this list.
/// Throws DeviceError when there is no Vulkan loader or no driver.
MULCIBER_API std::vector<DeviceDescription> list_devices(const DeviceOptions& options = {});
/// Throws DeviceError naming the available devices when none matches, and SettingError for a limit
/// that does not exist.
MULCIBER_API std::shared_ptr<Device> open_device(const DeviceOptions& options = {});
MULCIBER_API DeviceDescription describe(const Device& device);

struct SelfTest {
  size_t passed = 0;                  // kernels that this call tested and found correct
  size_t untested = 0;                // kernels left for the next call, because time ran out
  std::vector<std::string> failures;  // "kernel: what went wrong"
};

/// Runs a small case with a known result for every kernel that the device may use and that was not
/// yet tested on this driver version. The verdicts are stored in DeviceOptions::cache_folder, and
/// devices that any process opens with that folder afterwards use no kernel that failed: call
/// self_test() before open_device(). It takes about `seconds` for a new driver, and almost no time
/// later. Does nothing while another process tests, or without a writable folder. Throws
/// DeviceError when no device matches, and SettingError where the library was built without it
/// (MULCIBER_SELF_TEST).
MULCIBER_API SelfTest self_test(const DeviceOptions& options = {}, double seconds = 2);

}  // namespace mulciber
