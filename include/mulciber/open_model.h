// A model's files, opened.
#pragma once

#include <memory>
#include <string>

#include "mulciber/export.h"

namespace mulciber {

/// A Hugging Face folder or a GGUF file (any part of a split one) whose files are open. For
/// programs that use one more than once, such as to plan memory and then load it, or to load it on
/// two devices: what they share is read once.
class OpenModel;

/// Throws ModelError when files are missing, malformed, or contradict each other.
MULCIBER_API std::shared_ptr<const OpenModel> open_model(const std::string& path);

}  // namespace mulciber
