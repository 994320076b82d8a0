#include "apps/viewer/drawing.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <span>

#include "arcs.frag.h"
#include "arcs.vert.h"
#include "examples/graphics/pipeline.h"
#include "map.frag.h"
#include "map.vert.h"
#include "tiles.vert.h"

namespace mulciber::viewer {
namespace {

using graphics::check;

constexpr uint32_t kSegments = 24;  // segments of an arc, also in shaders/arcs.vert

/// The layout is that of shaders/scene.glsl.
struct ShaderColors {
  glm::vec4 weights[9], background, rule, mark;
};

glm::vec4 vector_of(const Rgb& rgb) { return {rgb[0], rgb[1], rgb[2], 1}; }

/// Fills a buffer, which is made again where it is too small.
template <class T>
void fill(graphics::Device& device, std::unique_ptr<graphics::Buffer>& buffer,
          std::span<const T> values, VkBufferUsageFlags usage) {
  const VkDeviceSize bytes = std::max<VkDeviceSize>(values.size_bytes(), 256);
  if (!buffer || buffer->size() < bytes)
    buffer = std::make_unique<graphics::Buffer>(device, 2 * bytes, usage);
  std::memcpy(buffer->mapped<T>(), values.data(), values.size_bytes());
}

}  // namespace

Drawing::Drawing(graphics::Device& device, const graphics::RenderTarget& target) : device_(device) {
  make_sets();
  make_pipelines(target);
}

Drawing::~Drawing() {
  const VkDevice device = device_.handle();
  for (const VkPipeline pipeline : {arcs_, tiles_, map_})
    vkDestroyPipeline(device, pipeline, nullptr);
  vkDestroyPipelineLayout(device, layout_, nullptr);
  vkDestroyDescriptorPool(device, pool_, nullptr);
  vkDestroyDescriptorSetLayout(device, set_layout_, nullptr);
  vkDestroySampler(device, sampler_, nullptr);
}

void Drawing::make_sets() {
  const VkDevice device = device_.handle();
  // Shaders fetch texels: devices need not support linear filtering of R32_SFLOAT.
  VkSamplerCreateInfo sampler{VK_STRUCTURE_TYPE_SAMPLER_CREATE_INFO};
  sampler.addressModeU = sampler.addressModeV = VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE;
  check(vkCreateSampler(device, &sampler, nullptr, &sampler_), "vkCreateSampler");
  VkDescriptorSetLayoutBinding bindings[4] = {};
  for (uint32_t i = 0; i < 4; ++i) {
    bindings[i].binding = i;
    bindings[i].descriptorCount = 1;
    bindings[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    bindings[i].stageFlags = VK_SHADER_STAGE_VERTEX_BIT | VK_SHADER_STAGE_FRAGMENT_BIT;
  }
  bindings[0].descriptorType = VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER;
  bindings[3].descriptorType = VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER;
  VkDescriptorSetLayoutCreateInfo set_info{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
  set_info.bindingCount = static_cast<uint32_t>(std::size(bindings));
  set_info.pBindings = bindings;
  check(vkCreateDescriptorSetLayout(device, &set_info, nullptr, &set_layout_),
        "vkCreateDescriptorSetLayout");
  constexpr uint32_t kSets = Frames::kInFlight;
  const VkDescriptorPoolSize sizes[] = {{VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER, kSets},
                                        {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 2 * kSets},
                                        {VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, kSets}};
  VkDescriptorPoolCreateInfo pool_info{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
  pool_info.maxSets = kSets;
  pool_info.poolSizeCount = static_cast<uint32_t>(std::size(sizes));
  pool_info.pPoolSizes = sizes;
  check(vkCreateDescriptorPool(device, &pool_info, nullptr, &pool_), "vkCreateDescriptorPool");
  for (Slot& slot : slots_) {
    VkDescriptorSetAllocateInfo allocate{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
    allocate.descriptorPool = pool_;
    allocate.descriptorSetCount = 1;
    allocate.pSetLayouts = &set_layout_;
    check(vkAllocateDescriptorSets(device, &allocate, &slot.set), "vkAllocateDescriptorSets");
  }
}

void Drawing::make_pipelines(const graphics::RenderTarget& target) {
  const VkPushConstantRange range = {VK_SHADER_STAGE_VERTEX_BIT | VK_SHADER_STAGE_FRAGMENT_BIT, 0,
                                     sizeof(DrawnMap)};
  VkPipelineLayoutCreateInfo info{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
  info.setLayoutCount = 1;
  info.pSetLayouts = &set_layout_;
  info.pushConstantRangeCount = 1;
  info.pPushConstantRanges = &range;
  check(vkCreatePipelineLayout(device_.handle(), &info, nullptr, &layout_),
        "vkCreatePipelineLayout");
  graphics::PipelineParts parts = {.vertex = arcs_vert, .fragment = arcs_frag, .layout = layout_};
  arcs_ = make_pipeline(device_, target, parts);
  parts.vertex = tiles_vert;
  parts.fragment = map_frag;
  tiles_ = make_pipeline(device_, target, parts);
  parts.vertex = map_vert;
  parts.depth = false;
  map_ = make_pipeline(device_, target, parts);
}

void Drawing::prepare(size_t slot, const graphics::Image& maps, const WordCurves& curves,
                      const std::vector<Tile>& tiles, const Theme& theme) {
  slot_ = slot;
  tile_count_ = static_cast<uint32_t>(tiles.size());
  Slot& used = slots_[slot];
  std::vector<glm::vec4> places;
  for (const std::vector<Word>* words : {&curves.queries, &curves.keys}) {
    for (const Word& word : *words) places.emplace_back(word.place, 1);
  }
  fill<glm::vec4>(device_, used.words, places, VK_BUFFER_USAGE_STORAGE_BUFFER_BIT);
  fill<Tile>(device_, used.tiles, tiles, VK_BUFFER_USAGE_STORAGE_BUFFER_BIT);
  ShaderColors colors;
  for (size_t i = 0; i < theme.weights.size(); ++i) colors.weights[i] = vector_of(theme.weights[i]);
  colors.background = vector_of(theme.background);
  colors.rule = vector_of(theme.rule);
  colors.mark = vector_of(theme.mark);
  fill<ShaderColors>(device_, used.colors, std::span(&colors, 1),
                     VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT);

  const VkDescriptorImageInfo image = {sampler_, maps.view(),
                                       VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL};
  const VkDescriptorBufferInfo buffers[] = {{used.words->handle(), 0, VK_WHOLE_SIZE},
                                            {used.tiles->handle(), 0, VK_WHOLE_SIZE},
                                            {used.colors->handle(), 0, sizeof(ShaderColors)}};
  VkWriteDescriptorSet writes[4] = {};
  for (uint32_t i = 0; i < 4; ++i) {
    writes[i].sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
    writes[i].dstSet = used.set;
    writes[i].dstBinding = i;
    writes[i].descriptorCount = 1;
    writes[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    if (i > 0) writes[i].pBufferInfo = &buffers[i - 1];
  }
  writes[0].descriptorType = VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER;
  writes[0].pImageInfo = &image;
  writes[3].descriptorType = VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER;
  vkUpdateDescriptorSets(device_.handle(), 4, writes, 0, nullptr);
}

void Drawing::draw(VkCommandBuffer commands, VkPipeline pipeline, const Rectangle& rectangle,
                   const DrawnMap& map, uint32_t vertices, uint32_t instances) const {
  const ImVec2 size = rectangle.size();
  const VkViewport viewport = {rectangle.min.x, rectangle.min.y, size.x, size.y, 0, 1};
  const VkRect2D scissor = {
      {static_cast<int32_t>(rectangle.min.x), static_cast<int32_t>(rectangle.min.y)},
      {static_cast<uint32_t>(size.x), static_cast<uint32_t>(size.y)}};
  if (size.x < 1 || size.y < 1) return;
  vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_GRAPHICS, pipeline);
  vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_GRAPHICS, layout_, 0, 1,
                          &slots_[slot_].set, 0, nullptr);
  vkCmdSetViewport(commands, 0, 1, &viewport);
  vkCmdSetScissor(commands, 0, 1, &scissor);
  vkCmdPushConstants(commands, layout_, VK_SHADER_STAGE_VERTEX_BIT | VK_SHADER_STAGE_FRAGMENT_BIT,
                     0, sizeof(map), &map);
  vkCmdDraw(commands, vertices, instances, 0, 0);
}

void Drawing::draw_arcs(VkCommandBuffer commands, const Rectangle& rectangle,
                        const DrawnMap& map) const {
  draw(commands, arcs_, rectangle, map, 2 * (kSegments + 1), map.rows * map.keys);
}

void Drawing::draw_tiles(VkCommandBuffer commands, const Rectangle& rectangle,
                         const DrawnMap& map) const {
  draw(commands, tiles_, rectangle, map, 4, tile_count_);
}

void Drawing::draw_map(VkCommandBuffer commands, const Rectangle& rectangle,
                       const DrawnMap& map) const {
  draw(commands, map_, rectangle, map, 4, 1);
}

}  // namespace mulciber::viewer
