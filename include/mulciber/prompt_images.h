// Images in the prompts of vision-language models.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "mulciber/export.h"
#include "mulciber/image.h"
#include "mulciber/open_model.h"

namespace mulciber {

/// An image prepared for a vision-language model: resized, and split into tiles if the model uses
/// them. Any number of prompts of that model may use it, on any thread.
class PreparedImage;

/// The placeholder of an image in a prompt ("<image>"); empty if the model takes no images. Throws
/// ModelError when its files disagree.
MULCIBER_API std::string image_placeholder(const OpenModel& model);
/// Prepares an image. Throws ModelError when the model takes no images, or not this one.
/// Thread-safe.
MULCIBER_API std::shared_ptr<const PreparedImage> prepare_image(const OpenModel& model,
                                                                const Image& image);
/// Replaces each placeholder of a prompt with the tokens of its image. In a prompt without
/// placeholders, the images come first. Throws ModelError when the numbers of placeholders and
/// images differ.
MULCIBER_API std::string expand_prompt(
    const OpenModel& model, const std::string& prompt,
    const std::vector<std::shared_ptr<const PreparedImage>>& images);
/// Number of tokens that an image's embeddings take in a prompt.
MULCIBER_API uint32_t embedded_tokens(const PreparedImage& image);

// Deprecated names of version 0.1.
using PreparedPicture [[deprecated("use PreparedImage")]] = PreparedImage;
[[deprecated("use image_placeholder")]] inline std::string picture_placeholder(
    const OpenModel& model) {
  return image_placeholder(model);
}
[[deprecated("use prepare_image")]] inline std::shared_ptr<const PreparedImage> prepare_picture(
    const OpenModel& model, const Image& image) {
  return prepare_image(model, image);
}

}  // namespace mulciber
