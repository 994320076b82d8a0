#include "runtime/pipeline_executables.h"

#include <algorithm>

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
  Executables(const PipelineExecutableFunctions& functions, VkDevice device, VkPipeline pipeline)
      : functions_(functions), device_(device), pipeline_(pipeline) {}

  std::vector<PipelineExecutable> read() const {
    VkPipelineInfoKHR info{VK_STRUCTURE_TYPE_PIPELINE_INFO_KHR};
    info.pipeline = pipeline_;
    uint32_t count = 0;
    const auto get = [&](VkPipelineExecutablePropertiesKHR* into) {
      functions_.check(functions_.properties(device_, &info, &count, into),
                       "vkGetPipelineExecutablePropertiesKHR");
    };
    get(nullptr);
    std::vector<VkPipelineExecutablePropertiesKHR> found(
        count, {VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_PROPERTIES_KHR});
    get(found.data());
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

  std::vector<PipelineStatistic> statistics(uint32_t index) const {
    const VkPipelineExecutableInfoKHR info = place(index);
    uint32_t count = 0;
    const auto get = [&](VkPipelineExecutableStatisticKHR* into) {
      functions_.check(functions_.statistics(device_, &info, &count, into),
                       "vkGetPipelineExecutableStatisticsKHR");
    };
    get(nullptr);
    std::vector<VkPipelineExecutableStatisticKHR> found(
        count, {VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR});
    get(found.data());
    std::vector<PipelineStatistic> statistics;
    for (uint32_t i = 0; i < count; ++i)
      statistics.push_back({found[i].name, found[i].description, value_of(found[i])});
    return statistics;
  }

  std::vector<std::pair<std::string, std::string>> representations(uint32_t index) const {
    const VkPipelineExecutableInfoKHR info = place(index);
    uint32_t count = 0;
    const auto get = [&](VkPipelineExecutableInternalRepresentationKHR* into) {
      functions_.check(functions_.representations(device_, &info, &count, into),
                       "vkGetPipelineExecutableInternalRepresentationsKHR");
    };
    // Each list takes three calls: one for the count, one for the lengths, one for the contents.
    get(nullptr);
    std::vector<VkPipelineExecutableInternalRepresentationKHR> found(
        count, {VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INTERNAL_REPRESENTATION_KHR});
    get(found.data());
    std::vector<std::string> texts(count);
    for (uint32_t i = 0; i < count; ++i) {
      texts[i].resize(found[i].dataSize);
      found[i].pData = texts[i].data();
    }
    get(found.data());
    std::vector<std::pair<std::string, std::string>> representations;
    for (uint32_t i = 0; i < count; ++i) {
      if (!found[i].isText) continue;
      texts[i].resize(std::min<size_t>(texts[i].size(), found[i].dataSize));
      while (!texts[i].empty() && texts[i].back() == '\0') texts[i].pop_back();
      representations.emplace_back(found[i].name, std::move(texts[i]));
    }
    return representations;
  }

  const PipelineExecutableFunctions& functions_;
  VkDevice device_;
  VkPipeline pipeline_;
};

}  // namespace

std::vector<PipelineExecutable> read_executables(const PipelineExecutableFunctions& functions,
                                                 VkDevice device, VkPipeline pipeline) {
  return Executables(functions, device, pipeline).read();
}

}  // namespace mulciber
