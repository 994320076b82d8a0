#include "models/families/picture_prompts.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/hash.h"
#include "models/families/open_model.h"
#include "mulciber/error.h"

namespace mulciber {
namespace {

// Tokens of Idefics3's processor around a tile's tokens.
constexpr const char *kAround = "<fake_token_around_image>", *kWhole = "<global-img>";

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + part.size()))
    ++count;
  return count;
}

[[noreturn]] void refuse_number(size_t places, size_t pictures, const std::string& placeholder) {
  throw ModelError("prompt",
                   fmt::format("has {} places for pictures, and {} {} given", places, pictures,
                               pictures == 1 ? "is" : "are"),
                   fmt::format("'{}' stands for a picture, and for nothing else", placeholder));
}

}  // namespace

PicturePrompts::PicturePrompts(const Checkpoint& checkpoint, const VisionLanguageConfig& config,
                               std::shared_ptr<const Tokenizer> tokenizer)
    : side_height_(config.vision.pictures.height),
      side_width_(config.vision.pictures.width_pixels),
      tile_tokens_(config.rows()),
      token_(static_cast<int32_t>(config.picture_token)),
      form_(config.prompt),
      processor_(read_picture_processor(checkpoint.files(), checkpoint.folder())),
      normalization_{processor_.scale, processor_.shift} {
  const std::string where = checkpoint.path().string();
  if (token_ < tokenizer->vocab_size()) placeholder_ = tokenizer->piece(token_);
  const std::vector<int32_t> own = tokenizer->encode(placeholder_, {.add_special = false});
  if (placeholder_.empty() || own != std::vector<int32_t>{token_})
    throw ModelError(where, fmt::format("has no token with the id {}, of pictures", token_),
                     "config.json and the tokenizer disagree: download both from one revision");
  if (config.vision.pictures.channels != 3)
    throw ModelError(where, fmt::format("sees {} channels", config.vision.pictures.channels),
                     "pictures have red, green and blue");
  if ((form_ == PicturePrompt::kTiles) != processor_.tiling.has_value())
    throw ModelError(where, "prepares pictures otherwise than its network takes them",
                     "take preprocessor_config.json from the model's own folder");
}

std::shared_ptr<const PreparedPicture> PicturePrompts::prepare(const Picture& picture) const {
  if (picture.rgb.size() != uint64_t{picture.width} * picture.height * 3)
    throw ModelError("picture",
                     fmt::format("has {} bytes, {} by {} pixels have three each",
                                 picture.rgb.size(), picture.width, picture.height),
                     "");
  auto prepared = std::make_shared<PreparedPicture>();
  PictureTiles tiles = processor_.tiles(picture);
  prepared->rows = tiles.rows;
  prepared->columns = tiles.columns;
  prepared->tile_tokens = tile_tokens_;
  for (Picture& tile : tiles.pictures) {
    // Pixels beside whole patches are not read.
    if (tile.width < side_width_ || tile.height < side_height_)
      throw ModelError("picture",
                       fmt::format("becomes one of {} by {} pixels, the model takes {} by {}",
                                   tile.width, tile.height, side_width_, side_height_),
                       "take preprocessor_config.json from the model's own folder");
    if (tile.width > side_width_ || tile.height > side_height_)
      tile = crop(tile, 0, 0, side_width_, side_height_);
    Fnv1a hash;
    hash.add(std::span<const uint8_t>(tile.rgb));
    prepared->tiles.push_back(
        std::make_shared<const PictureTile>(PictureTile{std::move(tile.rgb), hash.value()}));
  }
  return prepared;
}

std::string PicturePrompts::written(const PreparedPicture& picture) const {
  std::string tokens;
  for (uint32_t i = 0; i < tile_tokens_; ++i) tokens += placeholder_;
  if (form_ == PicturePrompt::kTokens) return tokens;
  std::string text;
  for (uint32_t row = 1; row <= picture.rows; ++row) {
    for (uint32_t column = 1; column <= picture.columns; ++column)
      text += fmt::format("{}<row_{}_col_{}>{}", kAround, row, column, tokens);
    text += "\n";
  }
  if (picture.rows > 0) text += "\n";
  return text + kAround + kWhole + tokens + kAround;
}

std::string PicturePrompts::expand(const std::string& prompt,
                                   const PreparedPictures& pictures) const {
  if (pictures.empty()) return prompt;
  const size_t places = count_of(prompt, placeholder_);
  std::string expanded;
  if (places == 0)
    for (const auto& picture : pictures) expanded += written(*picture) + "\n";
  if (places == 0) return expanded + prompt;
  if (places != pictures.size()) refuse_number(places, pictures.size(), placeholder_);
  size_t from = 0;
  for (const auto& picture : pictures) {
    const size_t at = prompt.find(placeholder_, from);
    expanded += prompt.substr(from, at - from) + written(*picture);
    from = at + placeholder_.size();
  }
  return expanded + prompt.substr(from);
}

std::vector<PlacedTile> PicturePrompts::place(std::span<const int32_t> ids,
                                              const PreparedPictures& pictures) const {
  std::vector<PlacedTile> placed;
  if (pictures.empty()) return placed;
  const auto tokens = static_cast<uint64_t>(std::ranges::count(ids, token_));
  uint64_t needed = 0;
  for (const auto& picture : pictures) needed += picture->tiles.size() * uint64_t{tile_tokens_};
  if (tokens != needed)
    throw ModelError(
        "prompt",
        fmt::format("has {} tokens of pictures, and the pictures given have {}", tokens, needed),
        fmt::format("'{}' stands for a picture, and for nothing else", placeholder_));
  auto at = ids.begin();
  for (const auto& picture : pictures) {
    for (const auto& tile : picture->tiles) {
      at = std::find(at, ids.end(), token_);
      const auto first = static_cast<uint32_t>(at - ids.begin());
      if (std::find_if(at, ids.end(), [&](int32_t id) { return id != token_; }) - at < tile_tokens_)
        throw ModelError("prompt", "has the tokens of a picture apart",
                         "give the placeholder of a picture once, or all of its tokens together");
      placed.push_back({first, tile_tokens_, tile});
      at += tile_tokens_;
    }
  }
  return placed;
}

std::string picture_placeholder(const OpenModel& model) {
  const auto& prompts = model.picture_prompts();
  return prompts ? prompts->placeholder() : "";
}

std::shared_ptr<const PreparedPicture> prepare_picture(const OpenModel& model,
                                                       const Picture& picture) {
  model.require(Capability::kSeePictures);
  return model.picture_prompts()->prepare(picture);
}

std::string expand_prompt(const OpenModel& model, const std::string& prompt,
                          const PreparedPictures& pictures) {
  if (pictures.empty() && !model.picture_prompts()) return prompt;
  model.require(Capability::kSeePictures);
  return model.picture_prompts()->expand(prompt, pictures);
}

uint32_t embedded_tokens(const PreparedPicture& picture) {
  return picture.tile_tokens * static_cast<uint32_t>(picture.tiles.size());
}

}  // namespace mulciber
