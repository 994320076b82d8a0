// What the C++ blocks of docs/guide/embedding.md take from the reader's engine.
// tests/source/guide_code.py compiles the blocks behind it, and links nothing.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <mulciber/embedding.h>
#include <mulciber/image_task.h>
#include <mulciber/model_loader.h>
#include <vulkan/vulkan.h>

// The engine's Vulkan objects.
extern VkInstance instance;
extern VkPhysicalDevice physical_device;
extern uint32_t api_version;
extern VkDevice device;
extern uint32_t family;
extern std::vector<const char*> extensions;
extern VkPhysicalDeviceFeatures2 features;
struct Engine {
  VkDevice device;
  VkQueue queue;
  uint32_t family;
  std::mutex queue_mutex;
  VkPipelineCache pipeline_cache;
  const VkAllocationCallbacks* callbacks;
  bool debugs;
};
extern Engine engine;
void report(const std::vector<std::string>& lines);

// Its frames.
struct EngineFrame {
  VkCommandBuffer commands;
  VkFence fence;
  uint64_t slice;
};
extern EngineFrame& frame;
extern VkSwapchainKHR swapchain;
extern uint32_t index;
extern VkCommandBuffer commands;
extern VkImage texture;
extern mulciber::ApplicationImage image;
extern VkBuffer buffer, rows, pixels;
extern VkDeviceSize bytes, row_bytes;
VkResult acquire(VkSwapchainKHR swapchain, uint32_t* index);
void begin(VkCommandBuffer commands);
void draw(VkCommandBuffer commands);
void submit(VkCommandBuffer commands, VkFence fence);

// Objects of other blocks.
extern mulciber::ApplicationPhysicalDevice physical;
extern mulciber::Requirements asked;
extern mulciber::ApplicationDevice application;
extern std::shared_ptr<mulciber::Device> adopted;
extern std::shared_ptr<const mulciber::OpenModel> model;
extern mulciber::Translator translator;
extern mulciber::TextGenerator generator;
extern mulciber::TextEncoder encoder;
extern mulciber::ImageEncoder image_encoder;
extern mulciber::TranslationTask translation;
extern mulciber::GenerationTask task;
extern mulciber::GenerateOptions options;
extern std::string prompt;
extern uint32_t tokens;

// Its files.
extern std::span<const std::byte> in_memory;
struct Archive {
  size_t read(uint64_t at, std::span<std::byte> into);
  uint64_t size() const;
};
extern Archive archive;

// VulkanMemoryAllocator, as far as the guide uses it.
using VmaAllocator = struct VmaAllocator_T*;
using VmaAllocation = struct VmaAllocation_T*;
struct VmaAllocationCreateInfo {
  VkFlags flags;
  int usage;
  VkMemoryPropertyFlags requiredFlags, preferredFlags;
  uint32_t memoryTypeBits;
  void *pool, *pUserData;
  float priority;
};
struct VmaAllocationInfo {
  VkDeviceMemory deviceMemory;
  VkDeviceSize offset;
  void* pMappedData;
};
constexpr VkFlags VMA_ALLOCATION_CREATE_MAPPED_BIT = 4;
VkResult vmaAllocateMemoryForBuffer(VmaAllocator allocator, VkBuffer buffer,
                                    const VmaAllocationCreateInfo* create,
                                    VmaAllocation* allocation, VmaAllocationInfo* info);
void vmaFreeMemory(VmaAllocator allocator, VmaAllocation allocation);
extern VmaAllocator allocator;
