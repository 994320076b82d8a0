/* A pipeline and a descriptor set for each dispatch. */
#pragma once

#include "device.h"

struct pipeline {
  VkDescriptorSetLayout set_layout; /* null where all buffers are addresses */
  VkPipelineLayout layout;
  VkPipeline pipeline;
  VkDescriptorSet set;
};

static VkDescriptorType descriptor_type(const struct node* node, uint32_t binding) {
  return is_texels(node, binding) ? VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER
                                  : VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
}

static void make_layouts(const struct node* node, struct pipeline* made) {
  if (has_set(node)) {
    VkDescriptorSetLayoutBinding* bindings = calloc(node->buffer_count, sizeof *bindings);
    uint32_t count = 0;
    for (uint32_t b = 0; b < node->buffer_count; ++b) {
      if (!is_bound(node, b)) continue;
      bindings[count].binding = b;
      bindings[count].descriptorType = descriptor_type(node, b);
      bindings[count].descriptorCount = 1;
      bindings[count++].stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
    }
    VkDescriptorSetLayoutCreateInfo info = {VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
    info.bindingCount = count;
    info.pBindings = bindings;
    check(vkCreateDescriptorSetLayout(device, &info, NULL, &made->set_layout),
          "vkCreateDescriptorSetLayout");
    free(bindings);
  }
  VkPushConstantRange range = {
      VK_SHADER_STAGE_COMPUTE_BIT, 0,
      4 * node->push_words + (node->by_address ? 8 * node->buffer_count : 0)};
  VkPipelineLayoutCreateInfo info = {VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
  info.setLayoutCount = has_set(node);
  info.pSetLayouts = &made->set_layout;
  info.pushConstantRangeCount = range.size > 0 ? 1 : 0;
  info.pPushConstantRanges = &range;
  check(vkCreatePipelineLayout(device, &info, NULL, &made->layout), "vkCreatePipelineLayout");
}

static void make_pipeline(const struct node* node, struct pipeline* made) {
  make_layouts(node, made);
  VkShaderModuleCreateInfo code = {VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
  void* words = read_file(node->shader, &code.codeSize);
  code.pCode = words;
  VkShaderModule module;
  check(vkCreateShaderModule(device, &code, NULL, &module), "vkCreateShaderModule");
  free(words);
  VkSpecializationMapEntry* entries = calloc(node->constant_count, sizeof *entries);
  for (uint32_t i = 0; i < node->constant_count; ++i) {
    entries[i].constantID = node->constants[i].id;
    entries[i].offset = (uint32_t)(i * sizeof(struct constant) + 4);
    entries[i].size = 4;
  }
  VkSpecializationInfo specialization = {node->constant_count, entries,
                                         node->constant_count * sizeof(struct constant),
                                         node->constants};
  VkPipelineShaderStageRequiredSubgroupSizeCreateInfo required = {
      VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO};
  required.requiredSubgroupSize = SUBGROUP_SIZE;
  VkComputePipelineCreateInfo info = {VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module;
  info.stage.pName = "main";
  info.stage.pSpecializationInfo = &specialization;
  info.layout = made->layout;
  if (node->full_subgroups && size_control) {
    info.stage.pNext = &required;
    info.stage.flags = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
  }
  check(vkCreateComputePipelines(device, VK_NULL_HANDLE, 1, &info, NULL, &made->pipeline),
        node->name);
  vkDestroyShaderModule(device, module, NULL);
  free(entries);
}

static VkBufferView* views; /* for texel buffers */
static uint32_t view_count;

static const VkBufferView* make_texels(VkBuffer buffer, const struct range* where) {
  VkBufferViewCreateInfo info = {VK_STRUCTURE_TYPE_BUFFER_VIEW_CREATE_INFO};
  info.buffer = buffer;
  info.format = VK_FORMAT_R32G32B32A32_UINT;
  info.offset = where->offset;
  info.range = (where->bytes + TEXEL_BYTES - 1) / TEXEL_BYTES * TEXEL_BYTES;
  check(vkCreateBufferView(device, &info, NULL, &views[view_count]), "vkCreateBufferView");
  return &views[view_count++];
}

static VkDescriptorPool make_sets(struct pipeline* pipelines, VkBuffer buffer) {
  uint32_t count = 0;
  for (size_t n = 0; n < COUNT(nodes); ++n) count += nodes[n].buffer_count;
  if (count == 0) return VK_NULL_HANDLE;
  views = calloc(count, sizeof *views);
  VkDescriptorPool pool;
  VkDescriptorPoolSize sizes[] = {{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, count},
                                  {VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER, count}};
  VkDescriptorPoolCreateInfo info = {VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
  info.maxSets = COUNT(nodes);
  info.poolSizeCount = COUNT(sizes);
  info.pPoolSizes = sizes;
  check(vkCreateDescriptorPool(device, &info, NULL, &pool), "vkCreateDescriptorPool");
  for (size_t n = 0; n < COUNT(nodes); ++n) {
    if (!has_set(&nodes[n])) continue;
    VkDescriptorSetAllocateInfo allocate = {VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
    allocate.descriptorPool = pool;
    allocate.descriptorSetCount = 1;
    allocate.pSetLayouts = &pipelines[n].set_layout;
    check(vkAllocateDescriptorSets(device, &allocate, &pipelines[n].set),
          "vkAllocateDescriptorSets");
    for (uint32_t b = 0; b < nodes[n].buffer_count; ++b) {
      if (!is_bound(&nodes[n], b)) continue;
      VkDescriptorBufferInfo where = {buffer, nodes[n].buffers[b].offset,
                                      nodes[n].buffers[b].bytes};
      VkWriteDescriptorSet write = {VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
      write.dstSet = pipelines[n].set;
      write.dstBinding = b;
      write.descriptorCount = 1;
      write.descriptorType = descriptor_type(&nodes[n], b);
      write.pBufferInfo = &where;
      if (is_texels(&nodes[n], b))
        write.pTexelBufferView = make_texels(buffer, &nodes[n].buffers[b]);
      vkUpdateDescriptorSets(device, 1, &write, 0, NULL);
    }
  }
  return pool;
}
