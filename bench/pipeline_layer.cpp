// A Vulkan layer that reports a program's compute pipelines: for each pipeline a line of JSON with
// its name, the driver's statistics and the inner loop of its disassembly (like `mulciber kernels
// --json` for ours); for each dispatch a line with its pipeline and groups.
// bench/compare_compiled.py runs other engines under it. Lines go to the file that
// MULCIBER_PIPELINE_LOG names; disassembly to the folder MULCIBER_PIPELINE_TEXT, if it is set.
//
// It supports one instance and one device at a time: a tool for measurements only.
#include <vulkan/vk_layer.h>
#include <vulkan/vulkan.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/kernels/executable.h"
#include "bench/layer_link.h"

namespace {

struct State {
  std::mutex mutex;
  PFN_vkGetInstanceProcAddr next_instance = nullptr;
  PFN_vkGetDeviceProcAddr next_device = nullptr;
  VkInstance instance = VK_NULL_HANDLE;
  VkDevice device = VK_NULL_HANDLE;
  std::map<VkPipeline, std::string> names;
  std::map<VkCommandBuffer, VkPipeline> bound;
  std::map<VkPipeline, int> numbers;
  int last_number = 0;
};
State& state() {
  static State* s = new State;  // outlives objects that a program destroys when it exits
  return *s;
}

void write(const nlohmann::json& line) {
  const char* file = std::getenv("MULCIBER_PIPELINE_LOG");
  if (file == nullptr) return;
  std::ofstream(file, std::ios::app)
      << line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
}

template <typename Function>
Function device_function(const char* name) {
  return reinterpret_cast<Function>(state().next_device(state().device, name));
}

/// The driver's report of a pipeline; writes its texts to files if asked for.
nlohmann::json executables_of(VkPipeline pipeline, int number) {
  const auto executables = mulciber::read_executables(
      {device_function<PFN_vkGetPipelineExecutablePropertiesKHR>(
           "vkGetPipelineExecutablePropertiesKHR"),
       device_function<PFN_vkGetPipelineExecutableStatisticsKHR>(
           "vkGetPipelineExecutableStatisticsKHR"),
       device_function<PFN_vkGetPipelineExecutableInternalRepresentationsKHR>(
           "vkGetPipelineExecutableInternalRepresentationsKHR"),
       [](VkResult, const char*) {}},
      state().device, pipeline);
  nlohmann::json list = nlohmann::json::array();
  for (size_t i = 0; i < executables.size(); ++i) {
    list.push_back(mulciber::apps::json_of(executables[i]));
    const char* folder = std::getenv("MULCIBER_PIPELINE_TEXT");
    if (folder == nullptr) continue;
    for (const auto& [name, text] : executables[i].representations) {
      std::string file = std::to_string(number) + "." + std::to_string(i) + "." + name + ".txt";
      for (char& c : file) {
        if (c == '/' || c == ' ') c = '_';
      }
      std::ofstream(std::string(folder) + "/" + file) << text;
    }
  }
  return list;
}

VKAPI_ATTR VkResult VKAPI_CALL create_compute_pipelines(VkDevice device, VkPipelineCache cache,
                                                        uint32_t count,
                                                        const VkComputePipelineCreateInfo* infos,
                                                        const VkAllocationCallbacks* allocator,
                                                        VkPipeline* pipelines) {
  State& s = state();
  std::vector<VkComputePipelineCreateInfo> asking(infos, infos + count);
  for (auto& info : asking) {
    info.flags |= VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR |
                  VK_PIPELINE_CREATE_CAPTURE_INTERNAL_REPRESENTATIONS_BIT_KHR;
  }
  const VkResult result = device_function<PFN_vkCreateComputePipelines>("vkCreateComputePipelines")(
      device, cache, count, asking.data(), allocator, pipelines);
  if (result != VK_SUCCESS) return result;
  const std::lock_guard lock(s.mutex);
  for (uint32_t i = 0; i < count; ++i) s.numbers[pipelines[i]] = ++s.last_number;
  return result;
}

VKAPI_ATTR void VKAPI_CALL bind_pipeline(VkCommandBuffer commands, VkPipelineBindPoint point,
                                         VkPipeline pipeline) {
  {
    const std::lock_guard lock(state().mutex);
    state().bound[commands] = pipeline;
  }
  device_function<PFN_vkCmdBindPipeline>("vkCmdBindPipeline")(commands, point, pipeline);
}

VKAPI_ATTR void VKAPI_CALL dispatch(VkCommandBuffer commands, uint32_t x, uint32_t y, uint32_t z) {
  State& s = state();
  {
    const std::lock_guard lock(s.mutex);
    const VkPipeline pipeline = s.bound[commands];
    int& number = s.numbers[pipeline];
    nlohmann::json line = {
        {"dispatch", std::abs(number)}, {"name", s.names[pipeline]}, {"groups", {x, y, z}}};
    // Reports are read when a pipeline is first used: most pipelines are never used.
    if (number > 0) {
      line["executables"] = executables_of(pipeline, number);
      number = -number;
    }
    write(line);
  }
  device_function<PFN_vkCmdDispatch>("vkCmdDispatch")(commands, x, y, z);
}

VKAPI_ATTR VkResult VKAPI_CALL set_name(VkDevice, const VkDebugUtilsObjectNameInfoEXT* info) {
  if (info->objectType == VK_OBJECT_TYPE_PIPELINE && info->pObjectName != nullptr) {
    const std::lock_guard lock(state().mutex);
    state().names[reinterpret_cast<VkPipeline>(info->objectHandle)] = info->pObjectName;
  }
  return VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL create_instance(const VkInstanceCreateInfo* info,
                                               const VkAllocationCallbacks* allocator,
                                               VkInstance* instance) {
  State& s = state();
  s.next_instance = mulciber::layer_below(*info).instance_entry;
  if (s.next_instance == nullptr) return VK_ERROR_INITIALIZATION_FAILED;
  const auto create =
      reinterpret_cast<PFN_vkCreateInstance>(s.next_instance(nullptr, "vkCreateInstance"));
  const VkResult result = create(info, allocator, instance);
  if (result == VK_SUCCESS) s.instance = *instance;
  return result;
}

VKAPI_ATTR VkResult VKAPI_CALL create_device(VkPhysicalDevice physical,
                                             const VkDeviceCreateInfo* info,
                                             const VkAllocationCallbacks* allocator,
                                             VkDevice* device) {
  State& s = state();
  const mulciber::LayerBelow below = mulciber::layer_below(*info);
  s.next_device = below.device_entry;
  if (s.next_device == nullptr) return VK_ERROR_INITIALIZATION_FAILED;
  std::vector<const char*> extensions(info->ppEnabledExtensionNames,
                                      info->ppEnabledExtensionNames + info->enabledExtensionCount);
  bool asked = false;
  for (const char* name : extensions)
    asked = asked || std::strcmp(name, VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME) == 0;
  VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR feature{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR};
  feature.pipelineExecutableInfo = VK_TRUE;
  VkDeviceCreateInfo more = *info;
  if (!asked) {
    extensions.push_back(VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME);
    feature.pNext = const_cast<void*>(info->pNext);
    more.pNext = &feature;
  }
  more.ppEnabledExtensionNames = extensions.data();
  more.enabledExtensionCount = static_cast<uint32_t>(extensions.size());
  const auto create =
      reinterpret_cast<PFN_vkCreateDevice>(below.instance_entry(s.instance, "vkCreateDevice"));
  const VkResult result = create(physical, &more, allocator, device);
  if (result == VK_SUCCESS) s.device = *device;
  return result;
}

PFN_vkVoidFunction ours(const char* name) {
  const std::pair<const char*, PFN_vkVoidFunction> functions[] = {
      {"vkCreateInstance", reinterpret_cast<PFN_vkVoidFunction>(create_instance)},
      {"vkCreateDevice", reinterpret_cast<PFN_vkVoidFunction>(create_device)},
      {"vkCreateComputePipelines", reinterpret_cast<PFN_vkVoidFunction>(create_compute_pipelines)},
      {"vkCmdBindPipeline", reinterpret_cast<PFN_vkVoidFunction>(bind_pipeline)},
      {"vkCmdDispatch", reinterpret_cast<PFN_vkVoidFunction>(dispatch)},
      {"vkSetDebugUtilsObjectNameEXT", reinterpret_cast<PFN_vkVoidFunction>(set_name)},
  };
  for (const auto& [known, function] : functions) {
    if (std::strcmp(name, known) == 0) return function;
  }
  return nullptr;
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL
layer_device_proc(VkDevice device, const char* name) {
  const PFN_vkVoidFunction found = ours(name);
  return found != nullptr ? found : state().next_device(device, name);
}

__attribute__((visibility("default"))) VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL
layer_instance_proc(VkInstance instance, const char* name) {
  if (std::strcmp(name, "vkGetInstanceProcAddr") == 0)
    return reinterpret_cast<PFN_vkVoidFunction>(layer_instance_proc);
  if (std::strcmp(name, "vkGetDeviceProcAddr") == 0)
    return reinterpret_cast<PFN_vkVoidFunction>(layer_device_proc);
  const PFN_vkVoidFunction found = ours(name);
  return found != nullptr ? found : state().next_instance(instance, name);
}

__attribute__((visibility("default"))) VKAPI_ATTR VkResult VKAPI_CALL
vkNegotiateLoaderLayerInterfaceVersion(VkNegotiateLayerInterface* negotiate) {
  negotiate->loaderLayerInterfaceVersion = 2;
  negotiate->pfnGetInstanceProcAddr = layer_instance_proc;
  negotiate->pfnGetDeviceProcAddr = layer_device_proc;
  negotiate->pfnGetPhysicalDeviceProcAddr = nullptr;
  return VK_SUCCESS;
}

}  // extern "C"
