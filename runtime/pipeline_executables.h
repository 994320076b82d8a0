// Facts that a driver reports about a compiled pipeline: VK_KHR_pipeline_executable_properties.
// Needs only Vulkan's types, so that bench/pipeline_layer.cpp can query other programs' pipelines.
#pragma once

#include <vulkan/vulkan_core.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace mulciber {

/// A number that a driver reports about compiled code, under the driver's name for it: "VGPRs".
struct PipelineStatistic {
  std::string name, description;
  double value;
};
/// The code of one stage on the device; most drivers make one executable of a compute pipeline.
struct PipelineExecutable {
  std::string name;
  uint32_t subgroup_size = 0;  // 0: the driver does not say
  std::vector<PipelineStatistic> statistics;
  /// Texts of the compiler, the disassembly among them: name and content.
  std::vector<std::pair<std::string, std::string>> representations;
};

struct PipelineExecutableFunctions {
  PFN_vkGetPipelineExecutablePropertiesKHR properties;
  PFN_vkGetPipelineExecutableStatisticsKHR statistics;
  PFN_vkGetPipelineExecutableInternalRepresentationsKHR representations;
  /// Receives the result and name of each call; throws to stop at a failure.
  std::function<void(VkResult, const char* function)> check;
};

/// Reads the executables of a pipeline that was made with statistics and internal representations
/// captured.
std::vector<PipelineExecutable> read_executables(const PipelineExecutableFunctions& functions,
                                                 VkDevice device, VkPipeline pipeline);

}  // namespace mulciber
