// Device capabilities: features, limits, subgroups, memory and matrix types in one struct, after
// the masks of --limits and the driver workarounds of quirks.cpp. Only capabilities and quirks.cpp
// know vendors.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "mulciber/device.h"
#include "runtime/vulkan.h"

namespace mulciber {

/// Features that a kernel row may need, as bits. feature_names() has their readable names.
enum Feature : uint64_t {
  kNothing = 0,
  kFloat16 = 1u << 0,             // 16-bit arithmetic
  kStorage16 = 1u << 1,           // 16-bit types in storage buffers
  kStorage8 = 1u << 2,            // 8-bit types in storage buffers
  kSubgroupArithmetic = 1u << 3,  // subgroupAdd, subgroupMax in compute
  kSubgroupShuffle = 1u << 4,     // subgroupShuffle, subgroupShuffleXor in compute
  kBufferAddress = 1u << 5,       // buffer device addresses
  kCooperativeMatrix = 1u << 6,   // VK_KHR_cooperative_matrix at all; matrix_types lists the shapes
  kMatrix16x16x16F16 = 1u << 7,   // ... 16x16x16, f16 operands, f32 accumulator, subgroup scope
  kMatrix8x8x8F16 = 1u << 8,      // ... 8x8x8, likewise
  kSubgroupSizeControl = 1u << 9,  // a required subgroup size and full subgroups
  kMatrix8x16x16F16 = 1u << 10,    // matrices of 8x16x16 (M, N, K), else like 16x16x16
  kIntegerDot = 1u << 11,          // dot products of four 8-bit integers in a 32-bit word
  kMatrix8x8x16F16 = 1u << 12,     // ... 8x8x16, else like 8x16x16
  kFlexibleMatrices = 1u << 13,    // VK_NV_cooperative_matrix2: sizes beside the listed ones
  kWorkgroupMatrix256 = 1u << 14,  // ... tiles of 128 x 128 that 256 invocations hold, f16 and f32
  kWorkgroupMatrix128 = 1u << 15,  // ... tiles of 64 x 64 that 128 invocations hold
  // Traits say which kernels suit a device. Rows name them in FOR; a trait never stops a row from
  // running.
  kGpu = 1u << 16,             // hardware: coalesced loads, shared memory pays
  kCpu = 1u << 17,             // a software driver: lanes are SIMD lanes, barriers are costly
  kFastAddress = 1u << 18,     // software driver on which buffer addresses beat descriptors
  kUniformLoads = 1u << 19,    // software driver that turns uniform loads into scalar broadcasts
  kNoUnrolling = 1u << 20,     // software driver that unrolls no loop and keeps arrays in memory
  kUnrolling = 1u << 21,       // software driver that unrolls loops where a shader asks for it
  kLargeTiles = 1u << 22,      // hardware on which an invocation keeps 8 x 8 sums in registers
  kFastIntegerDot = 1u << 23,  // an instruction for kIntegerDot of signed integers
  kFastMixedDot = 1u << 24,    // ... of signed with unsigned integers
  kPlainMatrices = 1u << 25,   // no device: matrix-unit kernels run on plain arithmetic, for tests
  // More features.
  kMatrix16x16x16BF16 = 1u << 26,  // 16x16x16 with bf16 operands
  kMatrix8x16x16BF16 = 1u << 27,
  kMatrix8x8x16BF16 = 1u << 28,
  kFastHalf = 1u << 29,  // a trait: f16 arithmetic at twice the rate of f32, and no matrix units
  kMatrix16x16x16I8 = 1u << 30,  // signed 8-bit operands, sums of 32-bit integers, subgroup scope
  kMatrix16x16x32I8 = 1u << 31,
  kMatrix8x16x32I8 = uint64_t{1} << 32,
  kMatrix8x8x32I8 = uint64_t{1} << 33,
  kTexelLoads = uint64_t{1} << 34,  // 16-byte loads through uniform texel buffers, which cover all
                                    // that a storage descriptor covers
  kManyUnits = uint64_t{1} << 35,   // a trait: hardware of 64 compute units or more
};
using FeatureSet = uint64_t;
constexpr uint32_t kTexelBytes = 16;  // bytes per load of kTexelLoads
constexpr uint32_t kLeastOfManyUnits = 64;
constexpr FeatureSet kAnyDevice = kNothing;
/// Bits that say which kernels suit a device; they stop no row.
constexpr FeatureSet kTraits = kGpu | kCpu | kFastAddress | kUniformLoads | kNoUnrolling |
                               kUnrolling | kLargeTiles | kFastIntegerDot | kFastMixedDot |
                               kPlainMatrices | kFastHalf | kManyUnits;
/// Matrix units that multiply f16, of any size.
constexpr FeatureSet kHalfMatrices =
    kMatrix16x16x16F16 | kMatrix8x16x16F16 | kMatrix8x8x16F16 | kMatrix8x8x8F16;
constexpr FeatureSet kWorkgroupMatrices = kWorkgroupMatrix256 | kWorkgroupMatrix128;
/// Matrix features with f16 operands, and with bf16 operands.
constexpr FeatureSet kF16Operands = kHalfMatrices | kWorkgroupMatrices;
constexpr FeatureSet kBF16Operands = kMatrix16x16x16BF16 | kMatrix8x16x16BF16 | kMatrix8x8x16BF16;
/// Matrix units that multiply signed 8-bit integers.
constexpr FeatureSet kIntegerMatrices =
    kMatrix16x16x16I8 | kMatrix16x16x32I8 | kMatrix8x16x32I8 | kMatrix8x8x32I8;
/// Features of matrices that a subgroup holds, and of matrix units of any kind.
constexpr FeatureSet kSubgroupMatrices = kHalfMatrices | kBF16Operands | kIntegerMatrices;
constexpr FeatureSet kMatrixUnits = kSubgroupMatrices | kWorkgroupMatrices;

struct FeatureName {
  Feature feature;
  const char* name;  // "16-bit storage"
  const char* mask;  // --limits word that takes it away, "no-16bit-storage"; null for traits
};
const std::vector<FeatureName>& feature_names();
/// Names the features of a set for messages: "16-bit storage, subgroup shuffle".
std::string describe_features(FeatureSet features);

const char* name_of(DeviceKind kind);

struct MatrixType {
  uint32_t m, n, k;          // flexible sizes must be multiples of these
  uint32_t a, b, c, result;  // VkComponentTypeKHR: 0 is f16, 1 is f32, 3 is int8, 5 is int32
  bool subgroup_scope;
  bool saturating;  // sums of integers saturate at the largest
  bool flexible = false;
};

struct MemoryHeap {
  uint64_t size;    // bytes
  uint64_t budget;  // bytes this process may use now; equals size without VK_EXT_memory_budget
  bool device_local;
  bool host_visible;  // some type of the heap is host-visible and coherent
};

/// Tuning where no kernel row decides: it bounds submissions and waits, never results. quirks.cpp
/// has the numbers and their sources.
struct Tuning {
  uint32_t steps_in_flight = 0;       // steps of decoding submitted ahead of the CPU
  uint32_t steps_per_submission = 0;  // steps of decoding submitted together
  double hang_seconds = 0;            // a submission that takes longer has hung
  // Assumed speed of the device until something was measured.
  double flops_per_s = 0, bytes_per_s = 0, dispatch_s = 0;
  uint32_t units = 0;  // assumed number of compute units, where the driver does not say it
};
Tuning tuning_of(DeviceKind kind);

struct AskedProblems;   // runtime/choices.h
struct DeviceFeatures;  // runtime/device_features.h

struct Capabilities {
  std::string name;
  std::string driver_name;
  std::string driver_info;
  VkDriverId driver_id = VkDriverId(0);
  /// Driver version as (major, minor, patch). Where the packed number is not the driver's own
  /// (Mesa's software drivers), it is read from driver_info.
  std::array<uint32_t, 3> driver_version = {};
  uint32_t packed_driver_version = 0;
  /// Version of the Vulkan CTS that the driver claims to pass (major, minor, subminor, patch);
  /// zeros: none.
  std::array<uint32_t, 4> conformance_version = {};
  uint32_t api_version = 0;
  uint32_t vendor_id = 0;
  uint32_t device_id = 0;
  std::array<uint8_t, VK_UUID_SIZE> pipeline_cache_uuid = {};
  DeviceKind kind = DeviceKind::kVirtual;
  Tuning tuning = tuning_of(kind);

  FeatureSet features = kNothing;
  /// Kernel rows that a workaround forbids or that failed their self-test on this device;
  /// `denied_reasons` has the reasons.
  std::vector<std::string> denied_rows;
  std::vector<std::string> denied_reasons;
  std::vector<std::string> passed_rows;  // rows that passed their self-test on this driver
  /// Rows chosen by measurement on this driver, keyed by choice_key() (runtime/choices.h).
  std::map<std::string, std::string> choices;
  /// Records what programs ask of selection on this device; null: nothing is recorded. Copies share
  /// it.
  std::shared_ptr<AskedProblems> asked;
  std::vector<std::string> applied_limits;

  uint64_t max_storage_range = 0;   // bytes one descriptor may cover
  uint64_t max_allocation = 0;      // bytes
  uint32_t max_push_constants = 0;  // bytes
  uint32_t max_shared_memory = 0;   // bytes per workgroup
  uint32_t max_invocations = 0;     // per workgroup
  uint32_t max_local_size = 0;      // along x
  std::array<uint32_t, 3> max_groups = {};
  uint32_t max_storage_buffers = 0;  // per shader stage
  uint64_t storage_alignment = 0;    // bytes, for descriptor offsets
  uint32_t subgroup_size = 0;
  uint32_t min_subgroup_size = 0;
  uint32_t max_subgroup_size = 0;
  /// Number of units that each run a workgroup: compute units of AMD, streaming multiprocessors of
  /// NVIDIA, shader cores of Arm; 0 when the driver does not say.
  uint32_t compute_units = 0;
  double timestamp_period = 0;  // nanoseconds per tick; 0: no timestamps on the compute queue
  uint32_t timestamp_bits = 0;
  bool host_visible_device_memory = false;  // weights can be written straight into device memory
  bool timeline_semaphores = false;
  bool memory_priority = false;      // VK_EXT_memory_priority
  bool occupancy_priority = false;   // VK_NV_compute_occupancy_priority
  bool pipeline_statistics = false;  // VK_KHR_pipeline_executable_properties
  std::vector<MatrixType> matrix_types;
  std::vector<MemoryHeap> heaps;

  bool has(FeatureSet needed) const { return (features & needed) == needed; }
  /// Workgroups that the device runs side by side, one on each unit: the driver's number, or the
  /// usual one for its kind.
  uint32_t units() const { return compute_units != 0 ? compute_units : tuning.units; }
  /// Bytes of the largest device-local heap that this process may use now.
  uint64_t device_memory() const;
};

/// Reads everything from the driver. `instance_version` bounds which structures may be asked for.
/// enabled: the features of an existing device; null: the device is still to be made, so all
/// offered features count.
Capabilities read_capabilities(const InstanceFunctions& vk, VkPhysicalDevice device,
                               uint32_t instance_version, const DeviceFeatures* enabled = nullptr);

/// Removes capabilities. `limits` is a comma-separated list of masks such as
/// "no-fp16,shared=16384,storage=1M" or a preset such as "android-2021". Throws SettingError naming
/// `where` and the known words.
void apply_limits(Capabilities& capabilities, std::string_view limits,
                  const char* where = "limits");
/// The words that apply_limits() knows, each with one line of explanation.
std::vector<std::pair<std::string, std::string>> known_limits();

/// Makes kernels run in subgroups of `size` invocations, or of the next size that the device has.
/// Does nothing on a device with one subgroup size.
void require_subgroup_size(Capabilities& capabilities, uint32_t size);

/// Applies the workarounds of quirks.cpp that match the driver.
void apply_quirks(Capabilities& capabilities);

}  // namespace mulciber
