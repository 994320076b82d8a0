// The attention maps of a text as images: one for each kind of attention, with an array layer for
// each head of each layer of the network. The device fills them; no weight passes the CPU.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <glm/glm.hpp>

#include "examples/graphics/image.h"

namespace mulciber::viewer {

/// A kind of attention that a model has.
struct MapKind {
  AttentionKind kind = AttentionKind::kCross;
  std::string name;
  uint32_t layers = 0, heads = 0;
};

class HeatMaps {
 public:
  explicit HeatMaps(graphics::Device& device) : device_(device) {}

  /// Makes images for maps of this extent: keys across, queries down. The device must be idle.
  /// Throws SettingError where the device allows only smaller images.
  void reserve(const MapKind& kind, VkExtent2D extent);
  /// Records the copies of all maps of a kind, behind the task's last slice.
  void record(VkCommandBuffer commands, AttentionTask& task, const MapKind& kind);
  /// Shows no maps any more.
  void forget();

  struct Kind {
    std::unique_ptr<graphics::Image> image;
    VkExtent2D extent = {};  // the present maps: keys across, queries down
    bool filled = false;
  };
  const Kind& of(AttentionKind kind) const { return kinds_[static_cast<size_t>(kind)]; }

 private:
  Kind& room_of(AttentionKind kind) { return kinds_[static_cast<size_t>(kind)]; }

  graphics::Device& device_;
  std::array<Kind, 3> kinds_;
};

/// A tile of the wall of maps; shaders/scene.glsl declares the same.
struct Tile {
  glm::vec4 center;  // its fourth number: the map
  glm::vec4 right;   // half of its width; its fourth number: half of its height
};
static_assert(sizeof(Tile) == 32);

/// The wall behind the words, with a tile for each head of each layer, in the order of maps. Layers
/// go up from the bottom and heads across, or the other way round where tiles become larger.
struct Wall {
  std::vector<Tile> tiles;
  bool layers_across = false;
};
Wall make_wall(uint32_t layers, uint32_t heads);

}  // namespace mulciber::viewer
