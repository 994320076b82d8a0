// Descriptor sets of a recording.
#include <fmt/format.h>

#include <map>

#include "mulciber/error.h"
#include "runtime/recorder.h"

namespace mulciber {

void Recording::make_descriptors() {
  const DeviceFunctions& vk = device_.vk();
  uint32_t set_count = 0;
  std::map<VkDescriptorType, uint32_t> descriptors;
  for (const Pipeline* pipeline : pipelines_) {
    if (pipeline->set_layout) ++set_count;
  }
  for (const ResolvedNode& node : nodes_) {
    for (const DescriptorBinding& binding : descriptor_bindings(node.node->kernel->reflection))
      ++descriptors[binding.type];
  }
  sets_.assign(nodes_.size(), VK_NULL_HANDLE);
  if (set_count == 0) return;
  std::vector<VkDescriptorPoolSize> sizes;
  for (const auto& [type, count] : descriptors) sizes.push_back({type, count});
  VkDescriptorPoolCreateInfo info{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
  info.maxSets = set_count;
  info.poolSizeCount = static_cast<uint32_t>(sizes.size());
  info.pPoolSizes = sizes.data();
  device_.check(
      vk.vkCreateDescriptorPool(device_.handle(), &info, device_.callbacks(), &descriptor_pool_),
      "vkCreateDescriptorPool");
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (!pipelines_[i]->set_layout) continue;
    VkDescriptorSetAllocateInfo allocate{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
    allocate.descriptorPool = descriptor_pool_;
    allocate.descriptorSetCount = 1;
    allocate.pSetLayouts = &pipelines_[i]->set_layout;
    device_.check(vk.vkAllocateDescriptorSets(device_.handle(), &allocate, &sets_[i]),
                  "vkAllocateDescriptorSets");
    write_descriptors(i);
  }
}

void Recording::write_descriptors(size_t node) {
  const std::vector<ResolvedUse>& uses = nodes_[node].buffers;
  const std::vector<DescriptorBinding> bindings =
      descriptor_bindings(nodes_[node].node->kernel->reflection);
  std::vector<VkDescriptorBufferInfo> infos;
  std::vector<VkBufferView> views;
  for (const ResolvedUse& use : uses) {
    if (use.view.offset % device_.capabilities().storage_alignment != 0) {
      throw ShapeError(nodes_[node].node->label,
                       fmt::format("binds offset {}, the device wants multiples of {}",
                                   use.view.offset, device_.capabilities().storage_alignment),
                       "");
    }
    // 16-bit tensors of odd length are read as 32-bit words; allocations are padded to 256 bytes.
    infos.push_back({use.view.buffer, use.view.offset, (use.view.size + 3) / 4 * 4});
  }
  std::vector<VkWriteDescriptorSet> writes(bindings.size(),
                                           {VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET});
  views.reserve(bindings.size());
  for (size_t i = 0; i < bindings.size(); ++i) {
    const auto& [binding, type] = bindings[i];
    writes[i].dstSet = sets_[node];
    writes[i].dstBinding = binding;
    writes[i].descriptorCount = 1;
    writes[i].descriptorType = type;
    writes[i].pBufferInfo = &infos[binding];
    if (type != VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER) continue;
    views.push_back(texels_of(uses[binding].view));
    writes[i].pTexelBufferView = &views.back();
  }
  device_.vk().vkUpdateDescriptorSets(device_.handle(), static_cast<uint32_t>(writes.size()),
                                      writes.data(), 0, nullptr);
  device_.counters().descriptor_writes += writes.size();
}

VkBufferView Recording::texels_of(const BufferView& view) {
  VkBufferViewCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_VIEW_CREATE_INFO};
  info.buffer = view.buffer;
  info.format = VK_FORMAT_R32G32B32A32_UINT;
  info.offset = view.offset;
  info.range = (view.size + kTexelBytes - 1) / kTexelBytes * kTexelBytes;
  VkBufferView texels = VK_NULL_HANDLE;
  device_.check(
      device_.vk().vkCreateBufferView(device_.handle(), &info, device_.callbacks(), &texels),
      "vkCreateBufferView");
  texel_views_.push_back(texels);
  return texels;
}

}  // namespace mulciber
