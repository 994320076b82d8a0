// Tiles of pictures that a model has seen: what tells them from one another, and their embeddings.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "models/families/picture_prompts.h"
#include "models/generation/picture_embedder.h"

namespace mulciber {

/// Bounded by bytes; what was not asked for the longest time goes first. Used by one thread.
class PictureMemory {
 public:
  using Rows = std::shared_ptr<const std::vector<float>>;

  PictureMemory(PictureEmbedder& embedder, const PictureNormalization& normalization,
                uint32_t first_number, uint32_t end_of_numbers)
      : embedder_(embedder),
        normalization_(normalization),
        next_number_(first_number),
        end_(end_of_numbers) {}

  /// Tiles have one number only where they are equal, byte by byte. Those that were forgotten
  /// between get another; UINT32_MAX, which several have, once there are no more.
  uint32_t number(const std::shared_ptr<const PictureTile>& tile);
  /// nullptr where they are to be computed.
  Rows find(const std::shared_ptr<const PictureTile>& tile);
  /// Computed, where they are not there. Throws as PictureEmbedder::embed().
  Rows embed(const std::shared_ptr<const PictureTile>& tile);

  uint64_t embedded() const { return embedded_; }
  double seconds() const { return seconds_; }

 private:
  struct Entry {
    std::shared_ptr<const PictureTile> tile;
    uint32_t number = 0;
    Rows rows;
    size_t bytes() const { return tile->rgb.size() + (rows ? rows->size() * sizeof(float) : 0); }
  };
  Entry& entry(const std::shared_ptr<const PictureTile>& tile);
  void forget();

  PictureEmbedder& embedder_;
  PictureNormalization normalization_;
  uint32_t next_number_, end_;
  std::list<Entry> entries_;  // the one used last first
  size_t bytes_ = 0;
  uint64_t embedded_ = 0;
  double seconds_ = 0;
};

}  // namespace mulciber
