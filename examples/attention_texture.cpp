// The attention of a translation as a texture: the attention map is computed on the application's
// device, copied into its image in the command buffer of a frame, and sampled by the drawing in
// that same frame. No weight passes the CPU. At the end the rendered image is read back and
// compared with the maps that Translator gives.
//   attention_texture MODEL_FOLDER "TEXT" [--kind cross|encoder|decoder] [--layer N] [--head N]
//                     [--image FILE.ppm]
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "graphics/pipeline.h"
#include "map.frag.h"
#include "map.vert.h"
#include "ppm.h"

namespace {

using graphics::check;

constexpr uint32_t kTexel = 16;         // pixels of the rendered image for each weight of the map
constexpr double kBudgetMicros = 4000;  // in a frame

struct Settings {
  std::string model, text, image;
  mulciber::AttentionMap map;
};

Settings read_arguments(int argc, char** argv) {
  Settings settings;
  bool wrong = argc < 3 || argc % 2 != 1;
  if (!wrong) {
    settings.model = argv[1];
    settings.text = argv[2];
  }
  for (int i = 3; !wrong && i < argc; i += 2) {
    const std::string name = argv[i], value = argv[i + 1];
    const auto number = static_cast<uint32_t>(std::strtoul(argv[i + 1], nullptr, 10));
    if (name == "--layer") {
      settings.map.layer = number;
    } else if (name == "--head") {
      settings.map.head = number;
    } else if (name == "--image") {
      settings.image = value;
    } else if (name == "--kind" && value == "encoder") {
      settings.map.kind = mulciber::AttentionKind::kEncoder;
    } else if (name == "--kind" && value == "decoder") {
      settings.map.kind = mulciber::AttentionKind::kDecoder;
    } else {
      wrong = name != "--kind" || value != "cross";
    }
  }
  if (wrong) {
    std::fprintf(stderr,
                 "usage: attention_texture MODEL_FOLDER \"TEXT\" [--kind cross|encoder|decoder] "
                 "[--layer N] [--head N] [--image FILE.ppm]\n");
    std::exit(2);
  }
  return settings;
}

/// Draws a texture over an image.
class MapDrawing {
 public:
  MapDrawing(graphics::Device& device, const graphics::Image& texture, VkExtent2D extent);
  ~MapDrawing();
  MapDrawing(const MapDrawing&) = delete;
  MapDrawing& operator=(const MapDrawing&) = delete;

  void draw(VkCommandBuffer commands) const;
  const graphics::RenderTarget& target() const { return target_; }

 private:
  VkDevice device_;
  graphics::RenderTarget target_;
  VkSampler sampler_ = VK_NULL_HANDLE;
  VkDescriptorSetLayout set_layout_ = VK_NULL_HANDLE;
  VkDescriptorPool pool_ = VK_NULL_HANDLE;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  VkPipeline pipeline_ = VK_NULL_HANDLE;
  VkDescriptorSet set_ = VK_NULL_HANDLE;
};

MapDrawing::MapDrawing(graphics::Device& device, const graphics::Image& texture, VkExtent2D extent)
    : device_(device.handle()), target_(device) {
  target_.resize(extent);
  // Devices need not support linear filtering of R32_SFLOAT, but all support this.
  VkSamplerCreateInfo sampler_info{VK_STRUCTURE_TYPE_SAMPLER_CREATE_INFO};
  sampler_info.addressModeU = sampler_info.addressModeV = VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE;
  check(vkCreateSampler(device_, &sampler_info, nullptr, &sampler_), "vkCreateSampler");
  VkDescriptorSetLayoutBinding binding = {};
  binding.descriptorType = VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER;
  binding.descriptorCount = 1;
  binding.stageFlags = VK_SHADER_STAGE_FRAGMENT_BIT;
  VkDescriptorSetLayoutCreateInfo set_info{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
  set_info.bindingCount = 1;
  set_info.pBindings = &binding;
  check(vkCreateDescriptorSetLayout(device_, &set_info, nullptr, &set_layout_),
        "vkCreateDescriptorSetLayout");
  const VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER, 1};
  VkDescriptorPoolCreateInfo pool_info{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
  pool_info.maxSets = pool_info.poolSizeCount = 1;
  pool_info.pPoolSizes = &size;
  check(vkCreateDescriptorPool(device_, &pool_info, nullptr, &pool_), "vkCreateDescriptorPool");
  VkDescriptorSetAllocateInfo allocate{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
  allocate.descriptorPool = pool_;
  allocate.descriptorSetCount = 1;
  allocate.pSetLayouts = &set_layout_;
  check(vkAllocateDescriptorSets(device_, &allocate, &set_), "vkAllocateDescriptorSets");
  const VkDescriptorImageInfo sampled = {sampler_, texture.view(),
                                         VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL};
  VkWriteDescriptorSet write{VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
  write.dstSet = set_;
  write.descriptorCount = 1;
  write.descriptorType = binding.descriptorType;
  write.pImageInfo = &sampled;
  vkUpdateDescriptorSets(device_, 1, &write, 0, nullptr);

  VkPipelineLayoutCreateInfo layout_info{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
  layout_info.setLayoutCount = 1;
  layout_info.pSetLayouts = &set_layout_;
  check(vkCreatePipelineLayout(device_, &layout_info, nullptr, &layout_), "vkCreatePipelineLayout");
  pipeline_ =
      make_pipeline(device, target_,
                    {.vertex = map_vert, .fragment = map_frag, .layout = layout_, .depth = false});
}

MapDrawing::~MapDrawing() {
  vkDestroyPipeline(device_, pipeline_, nullptr);
  vkDestroyPipelineLayout(device_, layout_, nullptr);
  vkDestroyDescriptorPool(device_, pool_, nullptr);
  vkDestroyDescriptorSetLayout(device_, set_layout_, nullptr);
  vkDestroySampler(device_, sampler_, nullptr);
}

void MapDrawing::draw(VkCommandBuffer commands) const {
  target_.begin(commands, {});
  vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_GRAPHICS, pipeline_);
  vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_GRAPHICS, layout_, 0, 1, &set_, 0,
                          nullptr);
  vkCmdDraw(commands, 3, 1, 0, 0);
  vkCmdEndRenderPass(commands);
}

/// The weights of one map in CPU memory, which Translator::translate() gives.
const float* numbers(const mulciber::AttentionMaps& maps, const mulciber::AttentionMap& map,
                     VkExtent2D extent) {
  const bool encoder = map.kind == mulciber::AttentionKind::kEncoder,
             decoder = map.kind == mulciber::AttentionKind::kDecoder;
  const std::vector<float>& all = encoder ? maps.encoder : decoder ? maps.decoder : maps.cross;
  const uint32_t heads = encoder   ? maps.encoder_heads
                         : decoder ? maps.decoder_heads
                                   : maps.cross_heads;
  return all.data() + size_t{map.layer * heads + map.head} * extent.width * extent.height;
}

}  // namespace

int main(int argc, char** argv) try {
  const Settings settings = read_arguments(argc, argv);
  const std::shared_ptr<const mulciber::OpenModel> model = mulciber::open_model(settings.model);
  graphics::Device application({.model = model.get()});
  const std::shared_ptr<mulciber::Device> device = mulciber::adopt_device(application.lent());
  mulciber::Translator translator(device, model);

  // In these frames the text is translated.
  int frames = 0;
  const auto frame = [&](mulciber::FrameTask& task, const auto& draw) {
    mulciber::FrameSlice slice;
    application.run([&](VkCommandBuffer commands) {
      slice = task.record(commands, kBudgetMicros);
      draw(commands);
    });
    task.completed(slice.number);
    ++frames;
  };
  mulciber::TranslationTask translation(translator, settings.text);
  while (!translation.done()) frame(translation, [](VkCommandBuffer) {});
  const mulciber::Translation result = translation.result();

  // In the next frames its attention is computed; the last of them shows it.
  mulciber::AttentionTask attention(translator, result);
  const VkExtent2D extent = attention.extent(settings.map.kind);
  const graphics::Image texture(
      application, {.extent = extent,
                    .format = VK_FORMAT_R32_SFLOAT,
                    .usage = VK_IMAGE_USAGE_TRANSFER_DST_BIT | VK_IMAGE_USAGE_SAMPLED_BIT});
  const MapDrawing drawing(application, texture, {extent.width * kTexel, extent.height * kTexel});
  while (!attention.done()) {
    frame(attention, [&](VkCommandBuffer commands) {
      if (!attention.recorded()) return;
      mulciber::ApplicationImage image;
      image.image = texture.handle();
      image.format = texture.description().format;
      image.extent = texture.description().extent;
      attention.record_attention(commands, image, settings.map);
      drawing.draw(commands);
    });
  }

  const std::vector<uint8_t> pixels = drawing.target().read();
  if (!settings.image.empty()) write_ppm(settings.image, drawing.target().extent(), pixels);
  const mulciber::AttentionMaps maps =
      translator.translate(settings.text, {.attention = true}).attention.value();
  const float* expected = numbers(maps, settings.map, extent);
  double worst = 0, largest = 0;
  for (uint32_t query = 0; query < extent.height; ++query) {
    for (uint32_t key = 0; key < extent.width; ++key) {
      const size_t x = key * kTexel + kTexel / 2, y = query * kTexel + kTexel / 2;
      const double shown = pixels[4 * (y * drawing.target().extent().width + x)] / 255.0;
      const double number = expected[query * extent.width + key];
      worst = std::max(worst, std::abs(shown - number));
      largest = std::max(largest, shown);
    }
  }
  std::printf("%s\n", result.text.c_str());
  std::printf("%u queries, %u keys, %d frames, largest weight %.2f, largest difference %.5f\n",
              extent.height, extent.width, frames, largest, worst);
  return worst <= 1.0 / 255 ? 0 : 1;
} catch (const mulciber::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
