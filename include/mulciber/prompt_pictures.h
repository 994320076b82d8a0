// Pictures in the prompts of language models that see them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "mulciber/export.h"
#include "mulciber/open_model.h"
#include "mulciber/picture.h"

namespace mulciber {

/// A picture as a language model takes it: resized, and cut into tiles where the model has these.
/// May be shown in any number of prompts of that model, by any thread.
class PreparedPicture;

/// The text that stands in a prompt for a picture ("<image>"); empty where the model sees none.
/// Throws ModelError where its files disagree.
MULCIBER_API std::string picture_placeholder(const OpenModel& model);
/// Throws ModelError where the model sees no pictures, or cannot take this one. May be called by
/// several threads.
MULCIBER_API std::shared_ptr<const PreparedPicture> prepare_picture(const OpenModel& model,
                                                                    const Picture& picture);
/// A prompt with each placeholder written as its picture's tokens are; of a prompt without any, the
/// pictures stand in front of it. Throws ModelError where there are other numbers of both.
MULCIBER_API std::string expand_prompt(
    const OpenModel& model, const std::string& prompt,
    const std::vector<std::shared_ptr<const PreparedPicture>>& pictures);
/// How many tokens of a prompt have its embeddings.
MULCIBER_API uint32_t embedded_tokens(const PreparedPicture& picture);

}  // namespace mulciber
