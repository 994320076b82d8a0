// Images in prompts of TextGenerator and of BatchGenerator.
#include <algorithm>
#include <utility>

#include "models/generation/batch_generator_impl.h"
#include "models/generation/text_generator_impl.h"
#include "mulciber/error.h"

namespace mulciber {

void TextGenerator::Impl::give_images(SequenceRequest& request, std::vector<ShownTile>& tiles,
                                      uint32_t reused, const std::atomic<bool>* cancel) {
  if (tiles.empty()) return;
  const uint64_t width = language->network().width(), before = images->embedded();
  const double seconds = images->seconds();
  for (ShownTile& tile : tiles) {
    if (tile.end() <= reused) continue;
    const uint32_t first = std::max(tile.first, reused);
    // A cancelled request prefills nothing.
    if (cancel && cancel->load()) {
      request.given.push_back({first - reused, {}});
      continue;
    }
    tile.rows = images->embed(tile.tile);
    request.given.push_back(
        {first - reused, std::span(*tile.rows).subspan((first - tile.first) * width)});
  }
  statistics.images += images->embedded() - before;
  statistics.image_seconds += images->seconds() - seconds;
}

void TextGenerator::Impl::check_images(const GenerateOptions& options) const {
  if (options.images.empty()) return;
  opened->require(Capability::kSeeImages);
  const std::pair<bool, const char*> others[] = {
      {options.shift, "GenerateOptions::shift"},
      {options.attention, "GenerateOptions::attention"},
      {options.prompt_lookup > 0 || options.draft, "GenerateOptions::prompt_lookup and draft"}};
  for (const auto& [asked, what] : others)
    if (asked)
      throw SettingError(what, "are asked for together with images", "leave one of them out");
}

BatchSequence::BatchSequence(uint64_t name, BatchRequest asked, const Tokenizer& tokenizer,
                             ShownPrompt shown)
    : number(name),
      request(std::move(asked)),
      prompt(shown.ids.begin(), shown.ids.end()),
      tiles(std::move(shown.tiles)),
      identity(std::move(shown.identity)),
      completion(tokenizer, shown.ids, request.stop,
                 [this](std::string_view text) { piece += text; }) {}

bool BatchGenerator::Impl::embed_tile(uint32_t slot, uint32_t first, uint32_t end) {
  for (ShownTile& tile : by_slot[slot].sequence->tiles) {
    if (tile.rows || tile.end() <= first || tile.first >= end) continue;
    tile.rows = images->find(tile.tile);
    if (tile.rows) continue;
    try {
      tile.rows = images->embed(tile.tile);
    } catch (const ModelError& error) {
      fail(slot, error, false);
    }
    statistics.images = images->embedded();
    statistics.image_seconds = images->seconds();
    return true;
  }
  return false;
}

std::vector<GivenRows> BatchGenerator::Impl::given_rows(BatchSequence& sequence, uint32_t held) {
  std::vector<GivenRows> given;
  for (ShownTile& tile : sequence.tiles) {
    // Embeddings of prefilled tokens are needed again only if the sequence is preempted.
    if (tile.end() <= held) tile.rows.reset();
    if (tile.rows) given.push_back({tile.first, *tile.rows});
  }
  return given;
}

}  // namespace mulciber
