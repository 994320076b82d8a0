// Conversion from structures of the C interface to C++ ones.
#pragma once

#include <algorithm>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "capi/handles.h"
#include "mulciber/embedding.h"
#include "mulciber/mulciber_c.h"
#include "mulciber/text_encoder.h"

namespace mulciber::c {

/// Dereferences a pointer; throws SettingError if it is null.
template <typename T>
T& given_to(T* pointer, const char* name) {
  if (!pointer) refuse_null(name);
  return *pointer;
}

/// Returns what is set in tasks of one kind alone; throws SettingError for tasks of other kinds.
template <typename Part>
Part& part_of(const MulciberTask& task, Part* MulciberTask::*part, const char* lacks,
              const char* remedy) {
  if (!(task.*part)) refuse_task(task, lacks, remedy);
  return *(task.*part);
}

/// Returns the completion of a task that is no translation, for functions that take both.
inline GenerationTask& completion_of(const MulciberTask& task) {
  return part_of(task, &MulciberTask::generation, "text",
                 "mulciber_begin_translation or mulciber_begin_generation");
}

/// Returns a Vulkan handle; throws SettingError if it is null.
template <typename Handle>
Handle given_handle(Handle handle, const char* name) {
  if (!handle) refuse_null(name);
  return handle;
}

/// Returns an element of a list; throws SettingError if the list is null.
template <typename T>
const T& element_of(const T* list, uint32_t at, const char* name) {
  return (&given_to(list, name))[at];
}

/// Copies a structure of the caller's version; fields that the caller's version lacks are 0.
template <typename T>
T of_any_version(const T* from, const char* name) {
  static_assert(offsetof(T, size) == 0);
  T whole = {};
  copy_any_version(&whole, from, sizeof(T), name);
  return whole;
}

/// Copies a structure that may be null: all of its fields are 0 then.
template <typename T>
T optional_of_any_version(const T* from, const char* name) {
  return from ? of_any_version(from, name) : T{};
}

/// Calls `take` for each structure of a list; all have the size of the first.
template <typename Take>
void for_each_adapter(uint32_t count, const MulciberAdapter* adapters, const Take& take) {
  const auto* at = reinterpret_cast<const char*>(adapters);
  for (uint32_t i = 0; i < count; ++i, at += given_to(adapters, "adapters").size)
    take(of_any_version(reinterpret_cast<const MulciberAdapter*>(at), "MulciberAdapter"));
}

/// Writes a structure of the caller's version. fill: sets fields; the others are 0. Where it
/// throws, all are.
template <typename T, typename Fill>
void give(T* to, const char* name, const Fill& fill) {
  const uint32_t size = of_any_version(to, name).size;
  T whole = {};
  whole.size = size;
  const auto write = [&] { std::memcpy(to, &whole, std::min<size_t>(size, sizeof(T))); };
  write();
  fill(whole);
  write();
}

/// Copies to the caller's memory of *size bytes, and sets *size to the number of bytes; `to` null:
/// only sets *size.
inline void give_bytes(std::span<const std::byte> bytes, size_t* size, void* to) {
  size_t& room = given_to(size, "size");
  if (to && room < bytes.size())
    throw SettingError("size", fmt::format("is {} of {}", room, bytes.size()), "give more room");
  if (to) std::memcpy(to, bytes.data(), bytes.size());
  room = bytes.size();
}

inline ApplicationPhysicalDevice application_physical(const MulciberPhysicalDevice* from) {
  const auto physical = of_any_version(from, "MulciberPhysicalDevice");
  return {physical.instance, physical.physical_device, physical.get_instance_proc_addr,
          physical.api_version};
}

inline ApplicationQueue application_queue(const MulciberDeviceInfo& info) {
  ApplicationQueue queue = {.queue = info.queue, .family = info.queue_family};
  if (info.lock_queue) queue.lock = [call = info.lock_queue, user = info.user] { call(user); };
  if (info.unlock_queue)
    queue.unlock = [call = info.unlock_queue, user = info.user] { call(user); };
  if (info.submit)
    queue.submit = [call = info.submit, user = info.user](VkQueue to, const VkSubmitInfo& work,
                                                          VkFence fence) {
      return call(user, to, &work, fence);
    };
  return queue;
}

inline ApplicationAllocator application_allocator(const MulciberDeviceInfo& info) {
  ApplicationAllocator allocator;
  if (info.allocate)
    allocator.allocate = [call = info.allocate, user = info.user](const MemoryRequest& request,
                                                                  ApplicationMemory* memory) {
      const MulciberMemoryRequest asked = {.size = sizeof(asked),
                                           .buffer = request.buffer,
                                           .requirements = request.requirements,
                                           .usage = static_cast<MulciberMemoryUsage>(request.usage),
                                           .required = request.required,
                                           .preferred = request.preferred,
                                           .device_address = request.device_address,
                                           .priority = request.priority};
      MulciberMemory found = {};
      found.size = sizeof(found);
      const VkResult result = call(user, &asked, &found);
      *memory = {found.memory, found.offset, found.mapped, found.handle};
      return result;
    };
  if (info.free)
    allocator.free = [call = info.free, user = info.user](const ApplicationMemory& memory) {
      const MulciberMemory freed = {sizeof(freed), memory.memory, memory.offset, memory.mapped,
                                    memory.handle};
      call(user, &freed);
    };
  return allocator;
}

inline LoadOptions load_options(const MulciberLoadInfo& info) {
  LoadOptions options = {.half_weights = info.half_weights != 0,
                         .half_activations = info.half_activations != 0,
                         .memory_limit = info.memory_limit};
  for_each_adapter(info.adapter_count, info.adapters, [&](const MulciberAdapter& adapter) {
    options.adapters.push_back({.path = &given_to(adapter.path, "path"),
                                .name = adapter.name ? adapter.name : "",
                                .scale = adapter.scale});
  });
  options.merge_adapters = info.merge_adapters != 0;
  options.fast_activations = info.fast_activations != 0;
  if (info.progress)
    options.on_progress = [call = info.progress, user = info.user](uint64_t done, uint64_t total) {
      call(user, done, total);
    };
  return options;
}

inline MulciberLoadInfo load_info(const MulciberLoadInfo* info) {
  return optional_of_any_version(info, "MulciberLoadInfo");
}

/// Calls `take` for each structure of a list; all have the size of the first. name: of the list,
/// type: of the structures.
template <typename T, typename Take>
void for_each_structure(uint32_t count, const T* list, const char* name, const char* type,
                        const Take& take) {
  const auto* at = reinterpret_cast<const char*>(list);
  for (uint32_t i = 0; i < count; ++i, at += given_to(list, name).size)
    take(of_any_version(reinterpret_cast<const T*>(at), type));
}

inline KeyValueStorage key_value_storage(MulciberKeyValueStorage storage) {
  switch (storage) {
    case MULCIBER_KEY_VALUES_F16: return KeyValueStorage::kF16;
    case MULCIBER_KEY_VALUES_F32: return KeyValueStorage::kF32;
    case MULCIBER_KEY_VALUES_Q8_0: return KeyValueStorage::kQ8_0;
    default: refuse_enumerator("key_values", storage, "MulciberKeyValueStorage");
  }
}

inline GeneratorOptions generator_options(const MulciberLoadInfo& info) {
  GeneratorOptions options = {.load = load_options(info),
                              .key_values = key_value_storage(info.key_values),
                              .context = info.context,
                              .sequences = std::max(info.sequences, 1u)};
  for_each_structure(info.masked_head_count, info.masked_heads, "masked_heads",
                     "MulciberHeadNumber", [&](const MulciberHeadNumber& head) {
                       options.masked_heads.push_back({head.layer, head.head});
                     });
  return options;
}

/// No value for numbers that are no MulciberAttentionKind.
inline std::optional<AttentionKind> known_attention_kind(MulciberAttentionKind kind) {
  switch (kind) {
    case MULCIBER_ATTENTION_ENCODER: return AttentionKind::kEncoder;
    case MULCIBER_ATTENTION_DECODER: return AttentionKind::kDecoder;
    case MULCIBER_ATTENTION_CROSS: return AttentionKind::kCross;
    default: return {};
  }
}

inline AttentionKind attention_kind(MulciberAttentionKind kind) {
  if (const std::optional<AttentionKind> known = known_attention_kind(kind)) return *known;
  refuse_enumerator("kind", kind, "MulciberAttentionKind");
}

inline AttentionMap attention_map(const MulciberAttentionMap* from) {
  const auto map = of_any_version(from, "MulciberAttentionMap");
  return {attention_kind(map.kind), map.layer, map.head};
}

/// Vulkan numbers the layouts of its first version up to PREINITIALIZED, and all later ones from a
/// thousand million on.
inline VkImageLayout image_layout(VkImageLayout layout, const char* name) {
  const auto value = static_cast<int64_t>(layout);
  const bool first = value >= 0 && value <= VK_IMAGE_LAYOUT_PREINITIALIZED;
  const bool later = value >= 1000000000 && value < VK_IMAGE_LAYOUT_MAX_ENUM;
  if (!first && !later) refuse_enumerator(name, value, "VkImageLayout");
  return layout;
}

inline ApplicationImage application_image(const MulciberApplicationImage* from) {
  const auto image = of_any_version(from, "MulciberApplicationImage");
  ApplicationImage result = {
      .image = given_handle(image.image, "MulciberApplicationImage::image"),
      .format = image.format,
      .extent = image.extent,
      .mip_level = image.mip_level,
      .array_layer = image.array_layer,
      .offset = image.offset,
      .layout = image_layout(image.layout, "MulciberApplicationImage::layout")};
  if (image.final_layout == VK_IMAGE_LAYOUT_PREINITIALIZED)
    throw SettingError("MulciberApplicationImage::final_layout",
                       "is VK_IMAGE_LAYOUT_PREINITIALIZED, which images begin with",
                       "give the layout of later uses");
  if (image.final_layout != VK_IMAGE_LAYOUT_UNDEFINED)
    result.final_layout =
        image_layout(image.final_layout, "MulciberApplicationImage::final_layout");
  if (image.stages != 0) result.stages = image.stages, result.accesses = image.accesses;
  if (image.changes_family) result.queue_family = image.queue_family;
  return result;
}

inline ApplicationBuffer application_buffer(const MulciberApplicationBuffer* from) {
  const auto buffer = of_any_version(from, "MulciberApplicationBuffer");
  ApplicationBuffer result = {
      .buffer = given_handle(buffer.buffer, "MulciberApplicationBuffer::buffer"),
      .offset = buffer.offset,
      .size = buffer.bytes};
  if (buffer.stages != 0) result.stages = buffer.stages, result.accesses = buffer.accesses;
  if (buffer.changes_family) result.queue_family = buffer.queue_family;
  return result;
}

inline FrameSemaphores frame_semaphores(const MulciberSemaphores* from) {
  FrameSemaphores result;
  if (!from) return result;
  const auto s = of_any_version(from, "MulciberSemaphores");
  for (uint32_t i = 0; i < s.wait_count; ++i)
    result.waits.push_back({given_handle(element_of(s.waits, i, "waits"), "waits"),
                            element_of(s.wait_stages, i, "wait_stages"),
                            s.wait_values ? s.wait_values[i] : uint64_t{0}});
  for (uint32_t i = 0; i < s.signal_count; ++i)
    result.signals.push_back({given_handle(element_of(s.signals, i, "signals"), "signals"),
                              s.signal_values ? s.signal_values[i] : uint64_t{0}});
  return result;
}

}  // namespace mulciber::c
