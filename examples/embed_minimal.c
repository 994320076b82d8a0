/* The least that a Vulkan application does to run a network inside its own frames: it makes its own
 * instance and device with the extensions and features that Mulciber asks for, and records a
 * translation into its own command buffer, a slice for each frame.
 * embed_minimal MODEL_FOLDER "TEXT" */
#include <mulciber/mulciber_c.h>
#include <stdio.h>
#include <stdlib.h>
#include <vulkan/vulkan.h>

static MulciberContext* context;

static void check(VkResult result, const char* what) {
  if (result == VK_SUCCESS) return;
  fprintf(stderr, "%s failed: %d\n", what, result);
  exit(1);
}
static void require(MulciberStatus status) {
  if (status == MULCIBER_OK) return;
  fprintf(stderr, "%s\n", mulciber_message(context));
  exit(1);
}

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: embed_minimal MODEL_FOLDER \"TEXT\"\n");
    return 2;
  }
  require(mulciber_create_context(&context));

  /* Make an instance, and take the first device. */
  VkApplicationInfo application = {VK_STRUCTURE_TYPE_APPLICATION_INFO};
  application.apiVersion = VK_API_VERSION_1_2;
  VkInstanceCreateInfo instance_info = {VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
  instance_info.pApplicationInfo = &application;
  VkInstance instance;
  check(vkCreateInstance(&instance_info, NULL, &instance), "vkCreateInstance");
  uint32_t count = 1;
  VkPhysicalDevice physical_device;
  const VkResult found = vkEnumeratePhysicalDevices(instance, &count, &physical_device);
  check(found == VK_INCOMPLETE ? VK_SUCCESS : found, "vkEnumeratePhysicalDevices");

  /* Ask what should be enabled, and whether the model fits. */
  MulciberModel* model;
  require(mulciber_open_model(context, argv[1], &model));
  MulciberPhysicalDevice physical = {sizeof(physical), instance, physical_device,
                                     vkGetInstanceProcAddr, application.apiVersion};
  MulciberRequirements asked = {sizeof(asked)};
  require(mulciber_query_requirements(context, &physical, model, NULL, &asked));
  if (!asked.fits) {
    fprintf(stderr, "%s\n", asked.obstacles);
    return 1;
  }
  const float priority = 1;
  VkDeviceQueueCreateInfo queue_info = {VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
  queue_info.queueFamilyIndex = asked.queue_family;
  queue_info.queueCount = 1;
  queue_info.pQueuePriorities = &priority;
  VkDeviceCreateInfo device_info = {VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
  device_info.pNext = asked.features;
  device_info.queueCreateInfoCount = 1;
  device_info.pQueueCreateInfos = &queue_info;
  device_info.enabledExtensionCount = asked.extension_count;
  device_info.ppEnabledExtensionNames = asked.extensions;
  VkDevice device;
  check(vkCreateDevice(physical_device, &device_info, NULL, &device), "vkCreateDevice");
  VkQueue queue;
  vkGetDeviceQueue(device, asked.queue_family, 0, &queue);

  /* Lend the device to the library. */
  MulciberDeviceInfo lent = {sizeof(lent)};
  lent.physical = &physical;
  lent.device = device;
  lent.extension_count = asked.extension_count;
  lent.extensions = asked.extensions;
  lent.features = asked.features;
  lent.queue = queue;
  lent.queue_family = asked.queue_family;
  MulciberDevice* borrowed;
  require(mulciber_adopt_device(context, &lent, &borrowed));
  MulciberTranslator* translator;
  require(mulciber_load_translator(context, borrowed, model, NULL, &translator));
  MulciberTask* task;
  require(mulciber_begin_translation(context, translator, argv[2], NULL, &task));

  /* Draw frames, with a slice of the translation in each command buffer. */
  VkCommandPoolCreateInfo pool_info = {VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  pool_info.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  pool_info.queueFamilyIndex = queue_info.queueFamilyIndex;
  VkCommandPool pool;
  check(vkCreateCommandPool(device, &pool_info, NULL, &pool), "vkCreateCommandPool");
  VkCommandBufferAllocateInfo buffer_info = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
  buffer_info.commandPool = pool;
  buffer_info.commandBufferCount = 1;
  VkCommandBuffer commands;
  check(vkAllocateCommandBuffers(device, &buffer_info, &commands), "vkAllocateCommandBuffers");
  VkFenceCreateInfo fence_info = {VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
  VkFence fence;
  check(vkCreateFence(device, &fence_info, NULL, &fence), "vkCreateFence");
  int frames = 0;
  for (; !mulciber_is_done(task); ++frames) {
    VkCommandBufferBeginInfo begin = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    check(vkBeginCommandBuffer(commands, &begin), "vkBeginCommandBuffer");
    /* About two milliseconds of the device's time; then the frame's drawing. */
    MulciberSlice slice = {sizeof(slice)};
    require(mulciber_record(context, task, commands, 2000, &slice));
    check(vkEndCommandBuffer(commands), "vkEndCommandBuffer");
    VkSubmitInfo submit = {VK_STRUCTURE_TYPE_SUBMIT_INFO};
    submit.commandBufferCount = 1;
    submit.pCommandBuffers = &commands;
    check(vkQueueSubmit(queue, 1, &submit, fence), "vkQueueSubmit");
    check(vkWaitForFences(device, 1, &fence, VK_TRUE, UINT64_MAX), "vkWaitForFences");
    check(vkResetFences(device, 1, &fence), "vkResetFences");
    require(mulciber_completed(context, task, slice.number));
  }
  const char* text;
  require(mulciber_text(context, task, &text));
  printf("%s\n", text);
  fprintf(stderr, "%d frames\n", frames);

  mulciber_destroy_task(task);
  mulciber_destroy_translator(translator);
  mulciber_destroy_device(borrowed);
  mulciber_destroy_model(model);
  mulciber_destroy_context(context);
  vkDestroyFence(device, fence, NULL);
  vkDestroyCommandPool(device, pool, NULL);
  vkDestroyDevice(device, NULL);
  vkDestroyInstance(instance, NULL);
  return 0;
}
