#include "models/families/image_prompts.h"

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

[[noreturn]] void refuse_number(size_t places, size_t images, const std::string& placeholder) {
  throw ModelError("prompt",
                   fmt::format("has {} places for images, and {} {} given", places, images,
                               images == 1 ? "is" : "are"),
                   fmt::format("'{}' stands for an image, and for nothing else", placeholder));
}

}  // namespace

ImagePrompts::ImagePrompts(const Checkpoint& checkpoint, const VisionLanguageConfig& config,
                           std::shared_ptr<const Tokenizer> tokenizer)
    : side_height_(config.vision.tower.height),
      side_width_(config.vision.tower.width_pixels),
      tile_tokens_(config.rows()),
      token_(static_cast<int32_t>(config.image_token)),
      form_(config.prompt),
      processor_(read_image_processor(checkpoint.files(), checkpoint.folder())),
      normalization_{processor_.scale, processor_.shift} {
  const std::string where = checkpoint.path().string();
  if (token_ < tokenizer->vocab_size()) placeholder_ = tokenizer->piece(token_);
  const std::vector<int32_t> own = tokenizer->encode(placeholder_, {.add_special = false});
  if (placeholder_.empty() || own != std::vector<int32_t>{token_})
    throw ModelError(where, fmt::format("has no token with the id {}, of images", token_),
                     "config.json and the tokenizer disagree: download both from one revision");
  if (config.vision.tower.channels != 3)
    throw ModelError(where, fmt::format("sees {} channels", config.vision.tower.channels),
                     "images have red, green and blue");
  if ((form_ == ImagePrompt::kTiles) != processor_.tiling.has_value())
    throw ModelError(where, "prepares images otherwise than its network takes them",
                     "take preprocessor_config.json from the model's own folder");
}

std::shared_ptr<const PreparedImage> ImagePrompts::prepare(const Image& image) const {
  if (image.rgb.size() != uint64_t{image.width} * image.height * 3)
    throw ModelError("image",
                     fmt::format("has {} bytes, {} by {} pixels have three each", image.rgb.size(),
                                 image.width, image.height),
                     "");
  auto prepared = std::make_shared<PreparedImage>();
  ImageTiles tiles = processor_.tiles(image);
  prepared->rows = tiles.rows;
  prepared->columns = tiles.columns;
  prepared->tile_tokens = tile_tokens_;
  for (Image& tile : tiles.images) {
    // Pixels beside whole patches are not read.
    if (tile.width < side_width_ || tile.height < side_height_)
      throw ModelError("image",
                       fmt::format("becomes one of {} by {} pixels, the model takes {} by {}",
                                   tile.width, tile.height, side_width_, side_height_),
                       "take preprocessor_config.json from the model's own folder");
    if (tile.width > side_width_ || tile.height > side_height_)
      tile = crop(tile, 0, 0, side_width_, side_height_);
    Fnv1a hash;
    hash.add(std::span<const uint8_t>(tile.rgb));
    prepared->tiles.push_back(
        std::make_shared<const ImageTile>(ImageTile{std::move(tile.rgb), hash.value()}));
  }
  return prepared;
}

std::string ImagePrompts::written(const PreparedImage& image) const {
  std::string tokens;
  for (uint32_t i = 0; i < tile_tokens_; ++i) tokens += placeholder_;
  if (form_ == ImagePrompt::kTokens) return tokens;
  std::string text;
  for (uint32_t row = 1; row <= image.rows; ++row) {
    for (uint32_t column = 1; column <= image.columns; ++column)
      text += fmt::format("{}<row_{}_col_{}>{}", kAround, row, column, tokens);
    text += "\n";
  }
  if (image.rows > 0) text += "\n";
  return text + kAround + kWhole + tokens + kAround;
}

std::string ImagePrompts::expand(const std::string& prompt, const PreparedImages& images) const {
  if (images.empty()) return prompt;
  const size_t places = count_of(prompt, placeholder_);
  std::string expanded;
  if (places == 0)
    for (const auto& image : images) expanded += written(*image) + "\n";
  if (places == 0) return expanded + prompt;
  if (places != images.size()) refuse_number(places, images.size(), placeholder_);
  size_t from = 0;
  for (const auto& image : images) {
    const size_t at = prompt.find(placeholder_, from);
    expanded += prompt.substr(from, at - from) + written(*image);
    from = at + placeholder_.size();
  }
  return expanded + prompt.substr(from);
}

std::vector<PlacedTile> ImagePrompts::place(std::span<const int32_t> ids,
                                            const PreparedImages& images) const {
  std::vector<PlacedTile> placed;
  if (images.empty()) return placed;
  const auto tokens = static_cast<uint64_t>(std::ranges::count(ids, token_));
  uint64_t needed = 0;
  for (const auto& image : images) needed += image->tiles.size() * uint64_t{tile_tokens_};
  if (tokens != needed)
    throw ModelError(
        "prompt",
        fmt::format("has {} tokens of images, and the images given have {}", tokens, needed),
        fmt::format("'{}' stands for an image, and for nothing else", placeholder_));
  auto at = ids.begin();
  for (const auto& image : images) {
    for (const auto& tile : image->tiles) {
      at = std::find(at, ids.end(), token_);
      const auto first = static_cast<uint32_t>(at - ids.begin());
      if (std::find_if(at, ids.end(), [&](int32_t id) { return id != token_; }) - at < tile_tokens_)
        throw ModelError("prompt", "has the tokens of an image apart",
                         "give the placeholder of an image once, or all of its tokens together");
      placed.push_back({first, tile_tokens_, tile});
      at += tile_tokens_;
    }
  }
  return placed;
}

std::string image_placeholder(const OpenModel& model) {
  const auto& prompts = model.image_prompts();
  return prompts ? prompts->placeholder() : "";
}

std::shared_ptr<const PreparedImage> prepare_image(const OpenModel& model, const Image& image) {
  model.require(Capability::kSeeImages);
  return model.image_prompts()->prepare(image);
}

std::string expand_prompt(const OpenModel& model, const std::string& prompt,
                          const PreparedImages& images) {
  if (images.empty() && !model.image_prompts()) return prompt;
  model.require(Capability::kSeeImages);
  return model.image_prompts()->expand(prompt, images);
}

uint32_t embedded_tokens(const PreparedImage& image) {
  return image.tile_tokens * static_cast<uint32_t>(image.tiles.size());
}

}  // namespace mulciber
