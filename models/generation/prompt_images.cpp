// Images in prompts of TextGenerator and of BatchGenerator.
#include <algorithm>
#include <utility>

#include "models/generation/generation_batch.h"
#include "models/generation/text_generator_impl.h"
#include "mulciber/error.h"

namespace mulciber {

void TextGenerator::Impl::check_images(const GenerateOptions& options) const {
  if (options.images.empty()) return;
  opened->require(Capability::kSeeImages);
  const std::pair<bool, const char*> others[] = {{options.shift, "GenerateOptions::shift"},
                                                 {options.attention, "GenerateOptions::attention"}};
  for (const auto& [asked, what] : others)
    if (asked)
      throw SettingError(what, "are asked for together with images", "leave one of them out");
}

bool GenerationBatch::embed_tile(uint32_t slot, uint32_t first, uint32_t end) {
  for (ShownTile& tile : by_slot[slot].sequence->tiles) {
    if (tile.rows || tile.end() <= first || tile.first >= end) continue;
    tile.rows = images->find(tile.tile);
    if (tile.rows) continue;
    const uint64_t before = images->embedded();
    const double seconds = images->seconds();
    try {
      tile.rows = images->embed(tile.tile);
    } catch (const ModelError&) {
      fail(slot, false);
    }
    statistics.images += images->embedded() - before;
    statistics.image_seconds += images->seconds() - seconds;
    return true;
  }
  return false;
}

std::vector<GivenRows> GenerationBatch::given_rows(BatchSequence& sequence, uint32_t held) {
  std::vector<GivenRows> given;
  for (ShownTile& tile : sequence.tiles) {
    // Embeddings of prefilled tokens are needed again only if the sequence is preempted.
    if (tile.end() <= held) tile.rows.reset();
    if (tile.rows) given.push_back({tile.first, *tile.rows});
  }
  return given;
}

}  // namespace mulciber
