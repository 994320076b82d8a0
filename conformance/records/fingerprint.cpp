#include "conformance/records/fingerprint.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/utsname.h>

#include <chrono>
#include <cstring>

#include "base/hash.h"
#include "conformance/build_info.h"
#include "runtime/spirv_modules.h"

namespace mulciber::conformance {
namespace {

// VkDriverId by number, so that older headers do not lack names.
constexpr const char* kDriverIds[] = {nullptr,
                                      "amd_proprietary",
                                      "amd_open_source",
                                      "mesa_radv",
                                      "nvidia_proprietary",
                                      "intel_proprietary_windows",
                                      "intel_open_source_mesa",
                                      "imagination_proprietary",
                                      "qualcomm_proprietary",
                                      "arm_proprietary",
                                      "google_swiftshader",
                                      "ggp_proprietary",
                                      "broadcom_proprietary",
                                      "mesa_llvmpipe",
                                      "moltenvk",
                                      "coreavi_proprietary",
                                      "juice_proprietary",
                                      "verisilicon_proprietary",
                                      "mesa_turnip",
                                      "mesa_v3dv",
                                      "mesa_panvk",
                                      "samsung_proprietary",
                                      "mesa_venus",
                                      "mesa_dozen",
                                      "mesa_nvk",
                                      "imagination_open_source_mesa",
                                      "mesa_honeykrisp"};

// Hashed byte by byte, so that any tool can check a module's hash.
void add_module(Fnv1a& hash, std::span<const uint32_t> words) {
  for (uint32_t word : words) {
    for (int shift = 0; shift < 32; shift += 8) hash.add(static_cast<uint8_t>(word >> shift));
  }
}

std::string hex(const Fnv1a& hash) { return fmt::format("{:016x}", hash.value()); }

void add_row_hashes(Fingerprint& f) {
  for (const Kernel& row : kernels()) {
    Fnv1a one;
    add_module(one, row.spirv);
    f.row_hashes[row.id] = row.spirv.empty() ? "not built" : hex(one);
  }
  f.spirv_hash = spirv_hash();
}

void add_limits(Fingerprint& f, const Capabilities& c) {
  auto add = [&](const char* name, auto value) {
    f.device_limits[name] = fmt::format("{}", value);
  };
  add("maxStorageBufferRange", c.max_storage_range);
  add("maxMemoryAllocationSize", c.max_allocation);
  add("maxPushConstantsSize", c.max_push_constants);
  add("maxComputeSharedMemorySize", c.max_shared_memory);
  add("maxComputeWorkGroupInvocations", c.max_invocations);
  add("maxComputeWorkGroupSize[0]", c.max_local_size);
  add("maxComputeWorkGroupCount", fmt::format("{}", fmt::join(c.max_groups, " ")));
  add("maxPerStageDescriptorStorageBuffers", c.max_storage_buffers);
  add("minStorageBufferOffsetAlignment", c.storage_alignment);
  add("subgroupSize", c.subgroup_size);
  add("minSubgroupSize", c.min_subgroup_size);
  add("maxSubgroupSize", c.max_subgroup_size);
  add("timestampPeriod", c.timestamp_period);
  uint64_t memory = 0;
  for (const MemoryHeap& heap : c.heaps) {
    if (heap.device_local) memory = std::max(memory, heap.size);
  }
  add("device-local heap", memory);
  std::string matrices;
  for (const MatrixType& t : c.matrix_types) {
    matrices +=
        fmt::format("{}{}{}x{}x{} of component types {} {} {} {}", matrices.empty() ? "" : ", ",
                    t.flexible ? "multiples of " : "", t.m, t.n, t.k, t.a, t.b, t.c, t.result);
  }
  add("cooperative matrices", matrices.empty() ? "none" : matrices);
}

std::string host_name() {
  utsname names{};
  return uname(&names) == 0 ? fmt::format("{} {}", names.sysname, names.machine) : "unknown";
}

}  // namespace

std::string driver_id_name(VkDriverId id) {
  const auto number = static_cast<size_t>(id);
  if (number == 0 || number >= std::size(kDriverIds)) return fmt::format("driver {}", number);
  return kDriverIds[number];
}

std::string spirv_hash() {
  Fnv1a all;
  for (const Kernel& row : kernels()) {
    if (row.spirv.empty()) continue;
    all.add(std::string_view(row.id));
    add_module(all, row.spirv);
  }
  return hex(all);
}

std::string describe_shaders() {
  return fmt::format("glslang {}, SPIR-V {}", describe_shader_compilers(), spirv_hash());
}

Fingerprint fingerprint_of(const Device& device, const RunOptions& options) {
  const Capabilities& c = device.capabilities();
  Fingerprint f;
  f.device = c.name;
  f.driver_id = driver_id_name(c.driver_id);
  f.driver_name = c.driver_name;
  f.driver_info = c.driver_info;
  f.driver_version = fmt::format("{}", fmt::join(c.driver_version, "."));
  f.conformance_version = fmt::format("{}", fmt::join(c.conformance_version, "."));
  f.api_version =
      fmt::format("{}.{}.{}", VK_API_VERSION_MAJOR(c.api_version),
                  VK_API_VERSION_MINOR(c.api_version), VK_API_VERSION_PATCH(c.api_version));
  f.limits = fmt::format("{}", fmt::join(c.applied_limits, ","));
  for (const FeatureName& name : feature_names()) {
    if (c.features & name.feature) f.features.push_back(name.name);
  }
  add_limits(f, c);
  if (!device.second_queue()) {
    f.second_queue = "none: the device has one compute queue";
  } else {
    f.second_queue = fmt::format("busy with fills and copies: family {}, the cases on family {}",
                                 device.second_queue_family(), device.queue_family());
  }
  f.host = host_name();
  f.suite_version = suite_version();
  f.git_revision = git_revision();
  f.glslang_version = describe_shader_compilers();
  add_row_hashes(f);
  f.seed = options.seed;
  f.repeats = options.repeats;
  f.validated = device.options().validate;
  f.started = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  return f;
}

}  // namespace mulciber::conformance
