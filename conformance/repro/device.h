/* The device, with the features with which the case occurred, and memory on it. */
#pragma once

#include "case_types.h"

static VkInstance instance;
static VkPhysicalDevice physical;
static VkDevice device;
static VkQueue queue;
static uint32_t family;
static uint32_t api_version; /* of instance and device */
static bool size_control;    /* a subgroup size may be required */

static bool has_extension(const char* name) {
  uint32_t count = 0;
  vkEnumerateDeviceExtensionProperties(physical, NULL, &count, NULL);
  VkExtensionProperties* list = calloc(count + 1, sizeof *list);
  vkEnumerateDeviceExtensionProperties(physical, NULL, &count, list);
  bool found = false;
  for (uint32_t i = 0; i < count; ++i) found |= strcmp(list[i].extensionName, name) == 0;
  free(list);
  return found;
}

static void choose_device(int wanted) {
  uint32_t version = VK_API_VERSION_1_1;
  vkEnumerateInstanceVersion(&version);
  if (version > VK_HEADER_VERSION_COMPLETE) version = VK_HEADER_VERSION_COMPLETE;
  /* The newest version used here: a driver may refuse an instance of a version newer than its own.
   */
  if (version > VK_MAKE_API_VERSION(0, 1, 3, VK_HEADER_VERSION))
    version = VK_MAKE_API_VERSION(0, 1, 3, VK_HEADER_VERSION);
  VkApplicationInfo application = {VK_STRUCTURE_TYPE_APPLICATION_INFO};
  application.pApplicationName = CASE_NAME;
  application.apiVersion = version;
  VkInstanceCreateInfo info = {VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
  info.pApplicationInfo = &application;
  check(vkCreateInstance(&info, NULL, &instance), "vkCreateInstance");
  uint32_t count = 0;
  check(vkEnumeratePhysicalDevices(instance, &count, NULL), "vkEnumeratePhysicalDevices");
  if (count == 0) give_up("there is no Vulkan device", "");
  VkPhysicalDevice* devices = calloc(count, sizeof *devices);
  check(vkEnumeratePhysicalDevices(instance, &count, devices), "vkEnumeratePhysicalDevices");
  VkPhysicalDeviceProperties properties;
  int chosen = wanted;
  for (int i = 0; i < (int)count; ++i) {
    vkGetPhysicalDeviceProperties(devices[i], &properties);
    if (chosen < 0 && strcmp(properties.deviceName, DEVICE_NAME) == 0) chosen = i;
  }
  if (chosen < 0) chosen = 0;
  for (int i = 0; i < (int)count; ++i) {
    vkGetPhysicalDeviceProperties(devices[i], &properties);
    printf("%s device %d: %s\n", i == chosen ? "*" : " ", i, properties.deviceName);
  }
  if (chosen >= (int)count) give_up("--device", "there is no device of that number");
  physical = devices[chosen];
  free(devices);
  vkGetPhysicalDeviceProperties(physical, &properties);
  api_version = properties.apiVersion < version ? properties.apiVersion : version;
  if (api_version < VK_API_VERSION_1_1) give_up("the device is older than Vulkan 1.1", "");
}

/* The features and extensions of the device to make. */
static const char* extensions[8];
static uint32_t extension_count;
static VkPhysicalDeviceFeatures2 features = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};

static bool offered(uint32_t core_since, const char* extension) {
  return (core_since != 0 && api_version >= core_since) || has_extension(extension);
}

static bool enable(bool supported, int bit, const char* name, void* structure, uint32_t core_since,
                   const char* extension) {
  if (!(FEATURES_ENABLED & bit)) return false;
  if (!supported) {
    if (FEATURES_NEEDED & bit) give_up("the device lacks", name);
    printf("without %s, which was enabled where the case was seen\n", name);
    return false;
  }
  ((VkBaseOutStructure*)structure)->pNext = (VkBaseOutStructure*)features.pNext;
  features.pNext = structure;
  if (core_since == 0 || api_version < core_since) extensions[extension_count++] = extension;
  return true;
}

#define QUERY(OFFERED, STRUCTURE)                                                     \
  if (OFFERED) {                                                                      \
    VkPhysicalDeviceFeatures2 query = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2}; \
    query.pNext = &(STRUCTURE);                                                       \
    vkGetPhysicalDeviceFeatures2(physical, &query);                                   \
  }

static void choose_features(void) {
  static VkPhysicalDevice16BitStorageFeatures storage16 = {
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES};
  QUERY(true, storage16);
  storage16.uniformAndStorageBuffer16BitAccess = storage16.storagePushConstant16 = VK_FALSE;
  storage16.storageInputOutput16 = VK_FALSE;
  enable(storage16.storageBuffer16BitAccess, STORAGE_16, "16-bit storage", &storage16,
         VK_API_VERSION_1_1, "");

  static VkPhysicalDevice8BitStorageFeatures storage8 = {
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES};
  QUERY(offered(VK_API_VERSION_1_2, VK_KHR_8BIT_STORAGE_EXTENSION_NAME), storage8);
  storage8.uniformAndStorageBuffer8BitAccess = storage8.storagePushConstant8 = VK_FALSE;
  enable(storage8.storageBuffer8BitAccess, STORAGE_8, "8-bit storage", &storage8,
         VK_API_VERSION_1_2, VK_KHR_8BIT_STORAGE_EXTENSION_NAME);

  static VkPhysicalDeviceShaderFloat16Int8Features float16 = {
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES};
  QUERY(offered(VK_API_VERSION_1_2, VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME), float16);
  if ((FEATURES_NEEDED & INTEGER_MATRICES) && !float16.shaderInt8)
    give_up("the device lacks", "8-bit integers");
  if (!(FEATURES_ENABLED & INTEGER_MATRICES)) float16.shaderInt8 = VK_FALSE;
  enable(float16.shaderFloat16, FLOAT_16, "16-bit arithmetic", &float16, VK_API_VERSION_1_2,
         VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME);

  static VkPhysicalDeviceBufferDeviceAddressFeatures address = {
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES};
  QUERY(offered(VK_API_VERSION_1_2, VK_KHR_BUFFER_DEVICE_ADDRESS_EXTENSION_NAME), address);
  address.bufferDeviceAddressCaptureReplay = address.bufferDeviceAddressMultiDevice = VK_FALSE;
  enable(address.bufferDeviceAddress, BUFFER_ADDRESS, "buffer device addresses", &address,
         VK_API_VERSION_1_2, VK_KHR_BUFFER_DEVICE_ADDRESS_EXTENSION_NAME);

  static VkPhysicalDeviceSubgroupSizeControlFeatures sizes = {
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES};
  QUERY(offered(VK_API_VERSION_1_3, VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME), sizes);
  size_control = enable(sizes.subgroupSizeControl && sizes.computeFullSubgroups,
                        SUBGROUP_SIZE_CONTROL, "subgroup size control", &sizes, VK_API_VERSION_1_3,
                        VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME);

  static VkPhysicalDeviceShaderIntegerDotProductFeatures integer_dot = {
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES};
  QUERY(offered(VK_API_VERSION_1_3, VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME), integer_dot);
  enable(integer_dot.shaderIntegerDotProduct, INTEGER_DOT, "integer dot products", &integer_dot,
         VK_API_VERSION_1_3, VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME);

  static VkPhysicalDeviceCooperativeMatrixFeaturesKHR matrix = {
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR};
  QUERY(has_extension(VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME), matrix);
  matrix.cooperativeMatrixRobustBufferAccess = VK_FALSE;
  enable(matrix.cooperativeMatrix, COOPERATIVE_MATRIX, "cooperative matrices", &matrix, 0,
         VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME);
  static VkPhysicalDeviceVulkanMemoryModelFeatures model = {
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES};
  QUERY(offered(VK_API_VERSION_1_2, VK_KHR_VULKAN_MEMORY_MODEL_EXTENSION_NAME), model);
  model.vulkanMemoryModelDeviceScope = model.vulkanMemoryModelAvailabilityVisibilityChains =
      VK_FALSE;
  enable(model.vulkanMemoryModel, COOPERATIVE_MATRIX, "the Vulkan memory model", &model,
         VK_API_VERSION_1_2, VK_KHR_VULKAN_MEMORY_MODEL_EXTENSION_NAME);
  static VkPhysicalDeviceCooperativeMatrix2FeaturesNV matrix2 = {
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_2_FEATURES_NV};
  QUERY(has_extension(VK_NV_COOPERATIVE_MATRIX_2_EXTENSION_NAME), matrix2);
  const VkBool32 flexible = matrix2.cooperativeMatrixFlexibleDimensions;
  const VkBool32 workgroups =
      matrix2.cooperativeMatrixWorkgroupScope && matrix2.cooperativeMatrixTensorAddressing &&
      matrix2.cooperativeMatrixBlockLoads && matrix2.cooperativeMatrixPerElementOperations &&
      (FEATURES_ENABLED & WORKGROUP_MATRICES);
  if ((FEATURES_NEEDED & WORKGROUP_MATRICES) && !workgroups)
    give_up("the device lacks", "matrices of workgroups");
  memset(&matrix2, 0, sizeof matrix2);
  matrix2.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_2_FEATURES_NV;
  matrix2.cooperativeMatrixFlexibleDimensions = flexible;
  matrix2.cooperativeMatrixWorkgroupScope = matrix2.cooperativeMatrixTensorAddressing =
      matrix2.cooperativeMatrixBlockLoads = matrix2.cooperativeMatrixPerElementOperations =
          workgroups;
  enable(flexible, FLEXIBLE_MATRICES, "matrices of flexible sizes", &matrix2, 0,
         VK_NV_COOPERATIVE_MATRIX_2_EXTENSION_NAME);
  static VkPhysicalDeviceShaderBfloat16FeaturesKHR bf16 = {
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR};
  QUERY(has_extension(VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME), bf16);
  bf16.shaderBFloat16DotProduct = VK_FALSE;
  enable(bf16.shaderBFloat16Type && bf16.shaderBFloat16CooperativeMatrix, BF16_MATRICES,
         "matrices of bf16", &bf16, 0, VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME);
}

/* SUBGROUP_SIZE is part of the constants: another size needs a repro written on such a device. */
static void check_limits(void) {
  VkPhysicalDeviceSubgroupSizeControlProperties sizes = {
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES};
  VkPhysicalDeviceSubgroupProperties subgroup = {
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES};
  VkPhysicalDeviceProperties2 properties = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
  properties.pNext = &subgroup;
  if (size_control) subgroup.pNext = &sizes;
  vkGetPhysicalDeviceProperties2(physical, &properties);
  const VkPhysicalDeviceLimits* limits = &properties.properties.limits;
  printf("  driver version %#x, Vulkan %u.%u.%u, subgroups of %u\n",
         properties.properties.driverVersion, VK_VERSION_MAJOR(api_version),
         VK_VERSION_MINOR(api_version), VK_VERSION_PATCH(api_version), subgroup.subgroupSize);
  const bool fits = subgroup.subgroupSize == SUBGROUP_SIZE ||
                    (size_control && sizes.minSubgroupSize <= SUBGROUP_SIZE &&
                     SUBGROUP_SIZE <= sizes.maxSubgroupSize);
  if (SUBGROUPS_NEEDED && !fits) {
    give_up("the device has subgroups of another size", "write the case anew on this device");
  }
  for (size_t n = 0; n < COUNT(nodes); ++n) {
    for (uint32_t b = 0; b < nodes[n].buffer_count; ++b) {
      if (is_texels(&nodes[n], b) &&
          (nodes[n].buffers[b].offset % limits->minTexelBufferOffsetAlignment ||
           nodes[n].buffers[b].bytes / TEXEL_BYTES > limits->maxTexelBufferElements)) {
        give_up("the device cannot bind a texel buffer", nodes[n].name);
      }
      if (nodes[n].by_address) continue;
      if (nodes[n].buffers[b].offset % limits->minStorageBufferOffsetAlignment) {
        give_up("the device wants storage buffers aligned otherwise",
                "write the case anew on this device");
      }
      if (nodes[n].buffers[b].bytes > limits->maxStorageBufferRange) {
        give_up("a buffer passes the device's maxStorageBufferRange", nodes[n].name);
      }
    }
  }
}

static void open_device(void) {
  uint32_t count = 0;
  vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, NULL);
  VkQueueFamilyProperties* families = calloc(count + 1, sizeof *families);
  vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, families);
  while (family < count && !(families[family].queueFlags & VK_QUEUE_COMPUTE_BIT)) ++family;
  if (family == count) give_up("the device has no compute queue", "");
  free(families);
  const float priority = 1;
  VkDeviceQueueCreateInfo queues = {VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
  queues.queueFamilyIndex = family;
  queues.queueCount = 1;
  queues.pQueuePriorities = &priority;
  VkDeviceCreateInfo info = {VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
  info.pNext = &features;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queues;
  info.enabledExtensionCount = extension_count;
  info.ppEnabledExtensionNames = extensions;
  check(vkCreateDevice(physical, &info, NULL, &device), "vkCreateDevice");
  vkGetDeviceQueue(device, family, 0, &queue);
}

struct buffer {
  VkBuffer handle;
  VkDeviceMemory memory;
  void* mapped;
  uint64_t address;
};

static struct buffer make_buffer(VkBufferUsageFlags usage, VkMemoryPropertyFlags wanted, bool host,
                                 bool address) {
  struct buffer made = {0};
  VkBufferCreateInfo info = {VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
  info.size = MEMORY_BYTES;
  info.usage = usage | (address ? VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT : 0);
  check(vkCreateBuffer(device, &info, NULL, &made.handle), "vkCreateBuffer");
  VkMemoryRequirements needs;
  vkGetBufferMemoryRequirements(device, made.handle, &needs);
  VkPhysicalDeviceMemoryProperties memory;
  vkGetPhysicalDeviceMemoryProperties(physical, &memory);
  uint32_t type = 0;
  while (type < memory.memoryTypeCount &&
         (!(needs.memoryTypeBits & (1u << type)) ||
          (memory.memoryTypes[type].propertyFlags & wanted) != wanted)) {
    ++type;
  }
  if (type == memory.memoryTypeCount) give_up("no memory of the kind needed", "");
  VkMemoryAllocateFlagsInfo flags = {VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO};
  flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
  VkMemoryAllocateInfo allocate = {VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
  allocate.pNext = address ? &flags : NULL;
  allocate.allocationSize = needs.size;
  allocate.memoryTypeIndex = type;
  check(vkAllocateMemory(device, &allocate, NULL, &made.memory), "vkAllocateMemory");
  check(vkBindBufferMemory(device, made.handle, made.memory, 0), "vkBindBufferMemory");
  if (host)
    check(vkMapMemory(device, made.memory, 0, VK_WHOLE_SIZE, 0, &made.mapped), "vkMapMemory");
  if (address) {
    PFN_vkGetBufferDeviceAddress get =
        (PFN_vkGetBufferDeviceAddress)vkGetDeviceProcAddr(device, "vkGetBufferDeviceAddress");
    if (!get)
      get =
          (PFN_vkGetBufferDeviceAddress)vkGetDeviceProcAddr(device, "vkGetBufferDeviceAddressKHR");
    VkBufferDeviceAddressInfo query = {VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO};
    query.buffer = made.handle;
    made.address = get(device, &query);
  }
  return made;
}

static void destroy_buffer(struct buffer* buffer) {
  vkDestroyBuffer(device, buffer->handle, NULL);
  vkFreeMemory(device, buffer->memory, NULL);
}

/* Writes poison everywhere, then the inputs, to expose missing writes and writes elsewhere. */
static void fill(void* memory) {
  for (uint64_t i = 0; i < MEMORY_BYTES / 4; ++i) ((uint32_t*)memory)[i] = POISON;
  for (size_t i = 0; i < COUNT(inputs); ++i) {
    size_t bytes;
    void* data = read_file(inputs[i].file, &bytes);
    if (bytes > inputs[i].where.bytes) give_up("too long", inputs[i].file);
    memcpy((char*)memory + inputs[i].where.offset, data, bytes);
    free(data);
  }
}
