// Compiles pipelines to read the driver's statistics.
#include <ctime>

#include "runtime/device.h"
#include "runtime/pipeline.h"

namespace mulciber {

CompiledPipeline PipelineCache::compile(const PipelineKey& key) {
  const bool tells =
      device_.options().pipeline_statistics && device_.capabilities().pipeline_statistics;
  const std::clock_t begin = std::clock();
  const Pipeline made =
      create(key, VK_NULL_HANDLE,
             tells ? VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR |
                         VK_PIPELINE_CREATE_CAPTURE_INTERNAL_REPRESENTATIONS_BIT_KHR
                   : 0);
  const DeviceFunctions& vk = device_.vk();
  CompiledPipeline compiled;
  compiled.seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  try {
    if (tells) {
      compiled.executables = read_executables(
          {vk.vkGetPipelineExecutablePropertiesKHR, vk.vkGetPipelineExecutableStatisticsKHR,
           vk.vkGetPipelineExecutableInternalRepresentationsKHR,
           [this](VkResult result, const char* function) { device_.check(result, function); }},
          device_.handle(), made.pipeline);
    }
  } catch (...) {
    vk.vkDestroyPipeline(device_.handle(), made.pipeline, device_.callbacks());
    throw;
  }
  vk.vkDestroyPipeline(device_.handle(), made.pipeline, device_.callbacks());
  return compiled;
}

}  // namespace mulciber
