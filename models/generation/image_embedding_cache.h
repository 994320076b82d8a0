// A cache of image tiles: a number for each different tile, and its embeddings.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "models/families/image_prompts.h"
#include "models/generation/image_embedder.h"

namespace mulciber {

/// Bounded in bytes; the least recently used tile is evicted first. Used by one thread.
class ImageEmbeddingCache {
 public:
  using Rows = std::shared_ptr<const std::vector<float>>;

  ImageEmbeddingCache(ImageEmbedder& embedder, const ImageNormalization& normalization,
                      uint32_t first_number, uint32_t end_of_numbers)
      : embedder_(embedder),
        normalization_(normalization),
        next_number_(first_number),
        end_(end_of_numbers) {}

  /// The number of a tile. Tiles share a number only where they are equal, byte by byte. A tile
  /// that was evicted gets another one later; once there are no more numbers, every new tile gets
  /// UINT32_MAX.
  uint32_t number(const std::shared_ptr<const ImageTile>& tile);
  /// The embeddings of a tile; nullptr where they are not computed yet.
  Rows find(const std::shared_ptr<const ImageTile>& tile);
  /// The embeddings of a tile, which are computed where they are not cached. Throws as
  /// ImageEmbedder::embed().
  Rows embed(const std::shared_ptr<const ImageTile>& tile);

  uint64_t embedded() const { return embedded_; }
  double seconds() const { return seconds_; }

 private:
  struct Entry {
    std::shared_ptr<const ImageTile> tile;
    uint32_t number = 0;
    Rows rows;
    size_t bytes() const { return tile->rgb.size() + (rows ? rows->size() * sizeof(float) : 0); }
  };
  Entry& entry(const std::shared_ptr<const ImageTile>& tile);
  void forget();

  ImageEmbedder& embedder_;
  ImageNormalization normalization_;
  uint32_t next_number_, end_;
  std::list<Entry> entries_;  // most recently used first
  size_t bytes_ = 0;
  uint64_t embedded_ = 0;
  double seconds_ = 0;
};

}  // namespace mulciber
