#include "models/generation/image_embedding_cache.h"

#include "base/clock.h"
#include "models/core/recently_used.h"

namespace mulciber {
namespace {

constexpr size_t kMostBytes = size_t{128} << 20;

}  // namespace

ImageEmbeddingCache::Entry& ImageEmbeddingCache::entry(
    const std::shared_ptr<const ImageTile>& tile) {
  const auto same = [&](const Entry& entry) {
    return entry.tile == tile || (entry.tile->hash == tile->hash && entry.tile->rgb == tile->rgb);
  };
  if (Entry* found = recently_used(entries_, same)) return *found;
  entries_.push_front({tile, next_number_ < end_ ? next_number_++ : UINT32_MAX, nullptr});
  bytes_ += entries_.front().bytes();
  forget();
  return entries_.front();
}

void ImageEmbeddingCache::forget() {
  while (bytes_ > kMostBytes && entries_.size() > 1) {
    bytes_ -= entries_.back().bytes();
    entries_.pop_back();
  }
}

uint32_t ImageEmbeddingCache::number(const std::shared_ptr<const ImageTile>& tile) {
  return entry(tile).number;
}

ImageEmbeddingCache::Rows ImageEmbeddingCache::find(const std::shared_ptr<const ImageTile>& tile) {
  return entry(tile).rows;
}

ImageEmbeddingCache::Rows ImageEmbeddingCache::embed(const std::shared_ptr<const ImageTile>& tile) {
  if (Rows rows = find(tile)) return rows;
  const auto start = Clock::now();
  std::vector<uint32_t> words(tile->rgb.size() / 3);
  for (size_t i = 0; i < words.size(); ++i) {
    const uint8_t* pixel = &tile->rgb[i * 3];
    words[i] = uint32_t{pixel[0]} | uint32_t{pixel[1]} << 8 | uint32_t{pixel[2]} << 16;
  }
  auto rows = std::make_shared<const std::vector<float>>(embedder_.embed(words, normalization_));
  Entry& kept = entry(tile);
  bytes_ -= kept.bytes();
  kept.rows = rows;
  bytes_ += kept.bytes();
  forget();
  ++embedded_;
  seconds_ += seconds_since(start);
  return rows;
}

}  // namespace mulciber
