// What a driver says of a pipeline that it compiled: VK_KHR_pipeline_executable_properties. Needs
// nothing but Vulkan's types, so that bench/pipeline_layer.cpp can ask of other programs'
// pipelines.
#pragma once

#include <vulkan/vulkan_core.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace mulciber {

/// A number that a driver says of what it compiled, in its own words: "VGPRs".
struct PipelineStatistic {
  std::string name, description;
  double value;
};
/// What one stage became on the device; most drivers make one of a compute pipeline.
struct PipelineExecutable {
  std::string name;
  uint32_t subgroup_size = 0;  // 0: the driver does not say
  std::vector<PipelineStatistic> statistics;
  /// Texts that the compiler gives: name and content, the disassembly among them.
  std::vector<std::pair<std::string, std::string>> representations;
};

struct PipelineExecutableFunctions {
  PFN_vkGetPipelineExecutablePropertiesKHR properties;
  PFN_vkGetPipelineExecutableStatisticsKHR statistics;
  PFN_vkGetPipelineExecutableInternalRepresentationsKHR representations;
  /// Of what each call returns, with its name; throws where it shall end there.
  std::function<void(VkResult, const char* function)> check;
};

/// Of a pipeline that was made with statistics and internal representations captured.
std::vector<PipelineExecutable> read_executables(const PipelineExecutableFunctions& functions,
                                                 VkDevice device, VkPipeline pipeline);

}  // namespace mulciber
