/* Runs one compute case on a Vulkan device and compares its results with the expected ones.
 *
 * case.h holds the case (dispatches, constants, offset of each buffer), *.spv the shaders, *.bin
 * the tensors; README.md describes them. Needs the Vulkan loader and nothing else.
 *
 *   repro [--device NUMBER] [--repeat COUNT]
 *
 * Exit code: 0 all results right and equal in every run, 1 wrong, 2 the case could not be run. */
#include "compare.h"
#include "device.h"
#include "pipeline.h"

static void barrier(VkCommandBuffer commands, VkPipelineStageFlags from, VkAccessFlags from_access,
                    VkPipelineStageFlags to, VkAccessFlags to_access) {
  VkMemoryBarrier memory = {VK_STRUCTURE_TYPE_MEMORY_BARRIER};
  memory.srcAccessMask = from_access;
  memory.dstAccessMask = to_access;
  vkCmdPipelineBarrier(commands, from, to, 0, 1, &memory, 0, NULL, 0, NULL);
}

static void record(VkCommandBuffer commands, const struct pipeline* pipelines,
                   const struct buffer* memory, VkBuffer upload, VkBuffer download) {
  const VkPipelineStageFlags compute = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                             copy = VK_PIPELINE_STAGE_TRANSFER_BIT;
  const VkAccessFlags shader = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT;
  VkCommandBufferBeginInfo begin = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  check(vkBeginCommandBuffer(commands, &begin), "vkBeginCommandBuffer");
  /* Waits for reads and writes of the last replay. */
  barrier(commands, copy, VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT, copy,
          VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT);
  VkBufferCopy all = {0, 0, MEMORY_BYTES};
  vkCmdCopyBuffer(commands, upload, memory->handle, 1, &all);
  barrier(commands, copy, VK_ACCESS_TRANSFER_WRITE_BIT, compute, shader);
  for (size_t n = 0; n < COUNT(nodes); ++n) {
    const struct node* node = &nodes[n];
    if (node->barrier) barrier(commands, compute, VK_ACCESS_SHADER_WRITE_BIT, compute, shader);
    vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipelines[n].pipeline);
    char push[MAX_PUSH];
    uint32_t bytes = 0;
    if (node->by_address) {
      for (uint32_t b = 0; b < node->buffer_count; ++b, bytes += 8) {
        const uint64_t address = memory->address + node->buffers[b].offset;
        memcpy(push + bytes, &address, 8);
      }
    }
    if (has_set(node)) {
      vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipelines[n].layout, 0, 1,
                              &pipelines[n].set, 0, NULL);
    }
    if (node->push_words) memcpy(push + bytes, node->push, 4 * node->push_words);
    bytes += 4 * node->push_words;
    if (bytes)
      vkCmdPushConstants(commands, pipelines[n].layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, bytes,
                         push);
    vkCmdDispatch(commands, node->groups[0], node->groups[1], node->groups[2]);
  }
  barrier(commands, compute, VK_ACCESS_SHADER_WRITE_BIT, copy, VK_ACCESS_TRANSFER_READ_BIT);
  vkCmdCopyBuffer(commands, memory->handle, download, 1, &all);
  barrier(commands, copy, VK_ACCESS_TRANSFER_WRITE_BIT, VK_PIPELINE_STAGE_HOST_BIT,
          VK_ACCESS_HOST_READ_BIT);
  check(vkEndCommandBuffer(commands), "vkEndCommandBuffer");
}

static void submit(VkCommandBuffer commands, VkFence fence) {
  VkSubmitInfo info = {VK_STRUCTURE_TYPE_SUBMIT_INFO};
  info.commandBufferCount = 1;
  info.pCommandBuffers = &commands;
  check(vkQueueSubmit(queue, 1, &info, fence), "vkQueueSubmit");
  const VkResult waited =
      vkWaitForFences(device, 1, &fence, VK_TRUE, WAIT_SECONDS * UINT64_C(1000000000));
  if (waited == VK_TIMEOUT) {
    printf("WRONG: the device did not end within %d seconds\n", WAIT_SECONDS);
    exit(WRONG);
  }
  check(waited, "vkWaitForFences");
  check(vkResetFences(device, 1, &fence), "vkResetFences");
}

static bool run_all(VkCommandBuffer commands, VkFence fence, const char* memory, long repeats) {
  bool right = true;
  size_t total = 0;
  for (size_t i = 0; i < COUNT(outputs); ++i) {
    total += outputs[i].rows * row_bytes(&outputs[i]);
  }
  char* first = malloc(total + 1);
  for (long run = 0; run < repeats; ++run) {
    submit(commands, fence);
    size_t at = 0;
    for (size_t i = 0; i < COUNT(outputs); ++i) {
      const size_t bytes = outputs[i].rows * row_bytes(&outputs[i]);
      if (run == 0) {
        memcpy(first + at, memory + outputs[i].offset, bytes);
        right &= compare(memory, i);
      } else if (memcmp(first + at, memory + outputs[i].offset, bytes) != 0) {
        printf("WRONG: output %zu of run %ld has other bits than that of the first\n", i, run + 1);
        right &= compare(memory, i);
        right = false;
      }
      at += bytes;
    }
    right &= undamaged((const unsigned char*)memory);
  }
  free(first);
  return right;
}

int main(int argc, char** argv) {
  int wanted = -1;
  long repeats = 20;
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 < argc && strcmp(argv[i], "--device") == 0) {
      wanted = atoi(argv[i + 1]);
    } else if (i + 1 < argc && strcmp(argv[i], "--repeat") == 0) {
      repeats = atol(argv[i + 1]) > 0 ? atol(argv[i + 1]) : 1;
    } else {
      give_up("usage", "repro [--device NUMBER] [--repeat COUNT]");
    }
  }
  printf("%s\nseen on %s\n", CASE_NAME, DEVICE_NAME);
  choose_device(wanted);
  choose_features();
  check_limits();
  open_device();

  const VkMemoryPropertyFlags host =
      VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  struct buffer memory = make_buffer(
      VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
          VK_BUFFER_USAGE_TRANSFER_DST_BIT |
          (FEATURES_NEEDED & TEXEL_LOADS ? VK_BUFFER_USAGE_UNIFORM_TEXEL_BUFFER_BIT : 0),
      VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, false, FEATURES_NEEDED & BUFFER_ADDRESS);
  struct buffer upload = make_buffer(VK_BUFFER_USAGE_TRANSFER_SRC_BIT, host, true, false);
  struct buffer download = make_buffer(VK_BUFFER_USAGE_TRANSFER_DST_BIT, host, true, false);
  fill(upload.mapped);
  struct pipeline* pipelines = calloc(COUNT(nodes), sizeof *pipelines);
  for (size_t n = 0; n < COUNT(nodes); ++n) make_pipeline(&nodes[n], &pipelines[n]);
  VkDescriptorPool sets = make_sets(pipelines, memory.handle);

  VkCommandPool pool;
  VkCommandPoolCreateInfo pool_info = {VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  pool_info.queueFamilyIndex = family;
  check(vkCreateCommandPool(device, &pool_info, NULL, &pool), "vkCreateCommandPool");
  VkCommandBufferAllocateInfo allocate = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
  allocate.commandPool = pool;
  allocate.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  allocate.commandBufferCount = 1;
  VkCommandBuffer commands;
  check(vkAllocateCommandBuffers(device, &allocate, &commands), "vkAllocateCommandBuffers");
  VkFence fence;
  VkFenceCreateInfo fence_info = {VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
  check(vkCreateFence(device, &fence_info, NULL, &fence), "vkCreateFence");
  record(commands, pipelines, &memory, upload.handle, download.handle);
  const bool right = run_all(commands, fence, download.mapped, repeats);
  printf("%s in %ld runs\n", right ? "right" : "WRONG", repeats);

  vkDestroyFence(device, fence, NULL);
  vkDestroyCommandPool(device, pool, NULL);
  vkDestroyDescriptorPool(device, sets, NULL);
  for (uint32_t i = 0; i < view_count; ++i) vkDestroyBufferView(device, views[i], NULL);
  free(views);
  for (size_t n = 0; n < COUNT(nodes); ++n) {
    vkDestroyPipeline(device, pipelines[n].pipeline, NULL);
    vkDestroyPipelineLayout(device, pipelines[n].layout, NULL);
    vkDestroyDescriptorSetLayout(device, pipelines[n].set_layout, NULL);
  }
  free(pipelines);
  destroy_buffer(&download);
  destroy_buffer(&upload);
  destroy_buffer(&memory);
  vkDestroyDevice(device, NULL);
  vkDestroyInstance(instance, NULL);
  return right ? RIGHT : WRONG;
}
