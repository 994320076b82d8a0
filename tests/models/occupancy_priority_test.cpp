// The share of a GPU's units that work may take beside drawing. No CPU driver has the extension, so
// the test wraps one: the application's loader functions report the extension, and record its
// command.
#include <cstring>
#include <vector>

#include "runtime/device.h"
#include "tests/catch.h"
#include "tests/support.h"
#include "tests/vulkan_application.h"

#include "mulciber/embedding.h"

using namespace mulciber;
using namespace mulciber::tests;

namespace {

// The driver's own functions.
PFN_vkGetInstanceProcAddr g_instance_entry = nullptr;
PFN_vkGetDeviceProcAddr g_device_entry = nullptr;
PFN_vkGetPhysicalDeviceFeatures2 g_features = nullptr;
PFN_vkEnumerateDeviceExtensionProperties g_extensions = nullptr;
std::vector<float> g_priorities;  // priorities that command buffers got

VKAPI_ATTR void VKAPI_CALL set_priority(VkCommandBuffer,
                                        const VkComputeOccupancyPriorityParametersNV* parameters) {
  CHECK(parameters->sType == VK_STRUCTURE_TYPE_COMPUTE_OCCUPANCY_PRIORITY_PARAMETERS_NV);
  CHECK(parameters->occupancyThrottling == 0);
  g_priorities.push_back(parameters->occupancyPriority);
}

VKAPI_ATTR void VKAPI_CALL get_features(VkPhysicalDevice device, VkPhysicalDeviceFeatures2* chain) {
  g_features(device, chain);
  for (auto* at = static_cast<VkBaseOutStructure*>(chain->pNext); at; at = at->pNext) {
    if (at->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COMPUTE_OCCUPANCY_PRIORITY_FEATURES_NV)
      reinterpret_cast<VkPhysicalDeviceComputeOccupancyPriorityFeaturesNV*>(at)
          ->computeOccupancyPriority = VK_TRUE;
  }
}

VKAPI_ATTR VkResult VKAPI_CALL enumerate_extensions(VkPhysicalDevice device, const char* layer,
                                                    uint32_t* count, VkExtensionProperties* list) {
  if (!list) {
    const VkResult result = g_extensions(device, layer, count, nullptr);
    ++*count;
    return result;
  }
  uint32_t own = *count - 1;
  const VkResult result = g_extensions(device, layer, &own, list);
  std::strcpy(list[own].extensionName, VK_NV_COMPUTE_OCCUPANCY_PRIORITY_EXTENSION_NAME);
  *count = own + 1;
  return result;
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL device_entry(VkDevice device, const char* name) {
  if (std::strcmp(name, "vkCmdSetComputeOccupancyPriorityNV") == 0)
    return reinterpret_cast<PFN_vkVoidFunction>(set_priority);
  return g_device_entry(device, name);
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL instance_entry(VkInstance instance, const char* name) {
  const PFN_vkVoidFunction own = g_instance_entry(instance, name);
  const auto replaced = [&](const char* which, auto& keep, auto by) -> PFN_vkVoidFunction {
    if (std::strcmp(name, which) != 0) return nullptr;
    keep = reinterpret_cast<std::remove_reference_t<decltype(keep)>>(own);
    return reinterpret_cast<PFN_vkVoidFunction>(by);
  };
  for (const PFN_vkVoidFunction found :
       {replaced("vkGetDeviceProcAddr", g_device_entry, device_entry),
        replaced("vkGetPhysicalDeviceFeatures2", g_features, get_features),
        replaced("vkEnumerateDeviceExtensionProperties", g_extensions, enumerate_extensions)}) {
    if (found) return found;
  }
  return own;
}

}  // namespace

TEST_CASE("What a GPU's units are shared by is told to every command buffer, and taken back") {
  VulkanApplication application;
  ApplicationDevice lent = application.lent();
  // The chain of enabled features, with this feature in front.
  VkPhysicalDeviceComputeOccupancyPriorityFeaturesNV occupancy{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COMPUTE_OCCUPANCY_PRIORITY_FEATURES_NV,
      application.asked.features->pNext, VK_TRUE};
  VkPhysicalDeviceFeatures2 enabled{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &occupancy, {}};
  lent.enabled_features = &enabled;
  lent.enabled_extensions.emplace_back(VK_NV_COMPUTE_OCCUPANCY_PRIORITY_EXTENSION_NAME);
  g_instance_entry = lent.physical.get_instance_proc_addr;
  lent.physical.get_instance_proc_addr = instance_entry;
  const auto requirement = [&] {
    for (const Requirement& each : requirements(lent.physical).list) {
      if (each.name == "computeOccupancyPriority") return each.available && !each.required;
    }
    return false;
  };
  CHECK(requirement());
  const std::string model = (source_dir() / "assets/en-de").string();
  {
    const auto device = adopt_device(lent);
    CHECK(describe(*device).occupancy_priority == 0.5f);
    Translator(device, model).translate("He has two dogs.");
    CHECK(g_priorities.empty());  // command buffers begin with this priority
  }
  const auto device = adopt_device(lent, {.occupancy_priority = 0.25f});
  CHECK(describe(*device).occupancy_priority == 0.25f);
  Translator translator(device, model);
  TranslationTask task(translator, "He has two dogs.");
  ApplicationCommands commands(application);
  FrameSlice slice;
  commands.run([&](VkCommandBuffer buffer) { slice = task.record(buffer, 0); });
  task.completed(slice.number);
  CHECK(g_priorities == std::vector<float>{0.25f, 0.5f});
  while (!task.done()) {
    task.step(5000);
    task.wait();
  }
  CHECK(task.result().text == translator.translate("He has two dogs.").text);
  g_priorities.clear();
  CHECK_THROWS_AS(adopt_device(lent, {.occupancy_priority = 2}), SettingError);
}

TEST_CASE("A device without occupancy priorities says so") {
  VulkanApplication application;
  const auto device = adopt_device(application.lent(), {.occupancy_priority = 0.25f});
  const bool known = device->capabilities().occupancy_priority;
  CHECK(describe(*device).occupancy_priority == (known ? 0.25f : 0.5f));
}
