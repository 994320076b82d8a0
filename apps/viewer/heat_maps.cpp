#include "apps/viewer/heat_maps.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace mulciber::viewer {
namespace {

// The position of the wall, in units of the scene: words are ten units across.
constexpr float kWallWidth = 9.4f, kWallHeight = 2.7f, kWallBottom = 1.95f, kWallDepth = -1.6f;
constexpr float kGap = 0.12f;        // to the next tile, in tile sizes
constexpr float kRadius = 14;        // the wall's curve
constexpr float kMostAspect = 1.6f;  // tiles are stretched no more than this

}  // namespace

void HeatMaps::reserve(const MapKind& kind, VkExtent2D extent) {
  Kind& room = room_of(kind.kind);
  const uint32_t maps = kind.layers * kind.heads;
  if (room.image) {
    const graphics::ImageDescription& has = room.image->description();
    if (has.layers >= maps && has.extent.width >= extent.width &&
        has.extent.height >= extent.height)
      return;
  }
  const VkPhysicalDeviceLimits& limits = device_.properties().limits;
  const uint32_t side = std::max(extent.width, extent.height);
  if (maps > limits.maxImageArrayLayers || side > limits.maxImageDimension2D)
    throw SettingError("attention maps",
                       std::to_string(maps) + " of " + std::to_string(side) +
                           " tokens are more than an image of this device has room for",
                       "take a shorter text or a smaller model");
  room = {};
  room.image = std::make_unique<graphics::Image>(
      device_, graphics::ImageDescription{
                   .extent = extent,
                   .format = VK_FORMAT_R32_SFLOAT,
                   .usage = VK_IMAGE_USAGE_TRANSFER_DST_BIT | VK_IMAGE_USAGE_SAMPLED_BIT,
                   .layers = maps,
                   .array = true});
}

void HeatMaps::record(VkCommandBuffer commands, AttentionTask& task, const MapKind& kind) {
  Kind& room = room_of(kind.kind);
  ApplicationImage image;
  image.image = room.image->handle();
  image.format = VK_FORMAT_R32_SFLOAT;
  image.extent = room.image->description().extent;
  image.stages = VK_PIPELINE_STAGE_VERTEX_SHADER_BIT | VK_PIPELINE_STAGE_FRAGMENT_SHADER_BIT;
  for (uint32_t layer = 0; layer < kind.layers; ++layer) {
    for (uint32_t head = 0; head < kind.heads; ++head) {
      image.array_layer = layer * kind.heads + head;
      task.record_attention(commands, image, {kind.kind, layer, head});
    }
  }
  room.extent = task.extent(kind.kind);
  room.filled = true;
}

void HeatMaps::forget() {
  for (Kind& kind : kinds_) kind.filled = false;
}

Wall make_wall(uint32_t layers, uint32_t heads) {
  struct Sides {
    float width, height;
    float area() const { return width * height; }
  };
  // The largest tiles of which all fit, stretched a little where that fills the wall.
  const auto sides_of = [](uint32_t columns, uint32_t rows) {
    const float across = kWallWidth / static_cast<float>(columns),
                up = kWallHeight / static_cast<float>(rows);
    const float height = std::min(up, across * kMostAspect);
    return Sides{std::min(across, height * kMostAspect), height};
  };
  Wall wall;
  wall.layers_across = sides_of(layers, heads).area() > 1.01f * sides_of(heads, layers).area();
  const uint32_t columns = wall.layers_across ? layers : heads;
  const auto [width, height] = sides_of(columns, wall.layers_across ? heads : layers);
  for (uint32_t map = 0; map < layers * heads; ++map) {
    const uint32_t layer = map / heads, head = map % heads;
    const auto column = static_cast<float>(wall.layers_across ? layer : head),
               row = static_cast<float>(wall.layers_across ? head : layer);
    const float angle = (column - static_cast<float>(columns - 1) / 2) * width / kRadius;
    const glm::vec3 center(kRadius * std::sin(angle), kWallBottom + (row + 0.5f) * height,
                           kWallDepth + kRadius * (1 - std::cos(angle)));
    const glm::vec3 right(std::cos(angle), 0, std::sin(angle));
    wall.tiles.push_back(
        {glm::vec4(center, static_cast<float>(map)),
         glm::vec4(right * (0.5f * width * (1 - kGap)), 0.5f * height * (1 - kGap))});
  }
  return wall;
}

}  // namespace mulciber::viewer
