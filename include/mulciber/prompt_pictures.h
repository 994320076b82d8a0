// Images in the prompts of vision-language models.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "mulciber/export.h"
#include "mulciber/open_model.h"
#include "mulciber/picture.h"

namespace mulciber {

/// An image prepared for a vision-language model: resized, and split into tiles if the model uses
/// them. Any number of prompts of that model may use it, on any thread.
class PreparedPicture;

/// The placeholder of an image in a prompt ("<image>"); empty if the model takes no images. Throws
/// ModelError when its files disagree.
MULCIBER_API std::string picture_placeholder(const OpenModel& model);
/// Prepares an image. Throws ModelError when the model takes no images, or not this one.
/// Thread-safe.
MULCIBER_API std::shared_ptr<const PreparedPicture> prepare_picture(const OpenModel& model,
                                                                    const Picture& picture);
/// Replaces each placeholder of a prompt with the tokens of its image. In a prompt without
/// placeholders, the images come first. Throws ModelError when the numbers of placeholders and
/// images differ.
MULCIBER_API std::string expand_prompt(
    const OpenModel& model, const std::string& prompt,
    const std::vector<std::shared_ptr<const PreparedPicture>>& pictures);
/// Number of tokens that an image's embeddings take in a prompt.
MULCIBER_API uint32_t embedded_tokens(const PreparedPicture& picture);

}  // namespace mulciber
