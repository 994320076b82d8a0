// What a driver says of a pipeline that it compiled: VK_KHR_pipeline_executable_properties.
#include <ctime>

#include "runtime/device.h"
#include "runtime/pipeline.h"

namespace mulciber {
namespace {

double value_of(const VkPipelineExecutableStatisticKHR& statistic) {
  switch (statistic.format) {
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_BOOL32_KHR: return statistic.value.b32 ? 1 : 0;
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_INT64_KHR:
      return static_cast<double>(statistic.value.i64);
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_UINT64_KHR:
      return static_cast<double>(statistic.value.u64);
    default: return statistic.value.f64;
  }
}

class Executables {
 public:
  Executables(Device& device, VkPipeline pipeline) : device_(device), pipeline_(pipeline) {}

  std::vector<PipelineExecutable> read() {
    VkPipelineInfoKHR info{VK_STRUCTURE_TYPE_PIPELINE_INFO_KHR};
    info.pipeline = pipeline_;
    uint32_t count = 0;
    const DeviceFunctions& vk = device_.vk();
    device_.check(vk.vkGetPipelineExecutablePropertiesKHR(device_.handle(), &info, &count, nullptr),
                  "vkGetPipelineExecutablePropertiesKHR");
    std::vector<VkPipelineExecutablePropertiesKHR> found(
        count, {VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_PROPERTIES_KHR});
    device_.check(
        vk.vkGetPipelineExecutablePropertiesKHR(device_.handle(), &info, &count, found.data()),
        "vkGetPipelineExecutablePropertiesKHR");
    std::vector<PipelineExecutable> executables;
    for (uint32_t i = 0; i < count; ++i) {
      executables.push_back({.name = found[i].name,
                             .subgroup_size = found[i].subgroupSize,
                             .statistics = statistics(i),
                             .representations = representations(i)});
    }
    return executables;
  }

 private:
  VkPipelineExecutableInfoKHR place(uint32_t index) const {
    VkPipelineExecutableInfoKHR info{VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR};
    info.pipeline = pipeline_;
    info.executableIndex = index;
    return info;
  }

  std::vector<PipelineStatistic> statistics(uint32_t index) {
    const VkPipelineExecutableInfoKHR info = place(index);
    uint32_t count = 0;
    const DeviceFunctions& vk = device_.vk();
    device_.check(vk.vkGetPipelineExecutableStatisticsKHR(device_.handle(), &info, &count, nullptr),
                  "vkGetPipelineExecutableStatisticsKHR");
    std::vector<VkPipelineExecutableStatisticKHR> found(
        count, {VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR});
    device_.check(
        vk.vkGetPipelineExecutableStatisticsKHR(device_.handle(), &info, &count, found.data()),
        "vkGetPipelineExecutableStatisticsKHR");
    std::vector<PipelineStatistic> statistics;
    for (uint32_t i = 0; i < count; ++i)
      statistics.push_back({found[i].name, found[i].description, value_of(found[i])});
    return statistics;
  }

  std::vector<std::pair<std::string, std::string>> representations(uint32_t index) {
    const VkPipelineExecutableInfoKHR info = place(index);
    uint32_t count = 0;
    const DeviceFunctions& vk = device_.vk();
    // Asked three times: how many there are, how long each is, and what it says.
    device_.check(vk.vkGetPipelineExecutableInternalRepresentationsKHR(device_.handle(), &info,
                                                                       &count, nullptr),
                  "vkGetPipelineExecutableInternalRepresentationsKHR");
    std::vector<VkPipelineExecutableInternalRepresentationKHR> found(
        count, {VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INTERNAL_REPRESENTATION_KHR});
    device_.check(vk.vkGetPipelineExecutableInternalRepresentationsKHR(device_.handle(), &info,
                                                                       &count, found.data()),
                  "vkGetPipelineExecutableInternalRepresentationsKHR");
    std::vector<std::string> texts(count);
    for (uint32_t i = 0; i < count; ++i) {
      texts[i].resize(found[i].dataSize);
      found[i].pData = texts[i].data();
    }
    device_.check(vk.vkGetPipelineExecutableInternalRepresentationsKHR(device_.handle(), &info,
                                                                       &count, found.data()),
                  "vkGetPipelineExecutableInternalRepresentationsKHR");
    std::vector<std::pair<std::string, std::string>> representations;
    for (uint32_t i = 0; i < count; ++i) {
      if (!found[i].isText) continue;
      texts[i].resize(std::min<size_t>(texts[i].size(), found[i].dataSize));
      while (!texts[i].empty() && texts[i].back() == '\0') texts[i].pop_back();
      representations.emplace_back(found[i].name, std::move(texts[i]));
    }
    return representations;
  }

  Device& device_;
  VkPipeline pipeline_;
};

}  // namespace

CompiledPipeline PipelineCache::compile(const PipelineKey& key) {
  const bool tells =
      device_.options().pipeline_statistics && device_.capabilities().pipeline_statistics;
  const std::clock_t begin = std::clock();
  const Pipeline made =
      create(key, VK_NULL_HANDLE,
             tells ? VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR |
                         VK_PIPELINE_CREATE_CAPTURE_INTERNAL_REPRESENTATIONS_BIT_KHR
                   : 0);
  CompiledPipeline compiled;
  compiled.seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  try {
    if (tells) compiled.executables = Executables(device_, made.pipeline).read();
  } catch (...) {
    device_.vk().vkDestroyPipeline(device_.handle(), made.pipeline, nullptr);
    throw;
  }
  device_.vk().vkDestroyPipeline(device_.handle(), made.pipeline, nullptr);
  return compiled;
}

}  // namespace mulciber
