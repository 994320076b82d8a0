// Converts the attention maps of a language model's text to those of the attention page.
#pragma once

#include <cstddef>

#include "apps/attention/page.h"
#include "mulciber/text_generator.h"

namespace mulciber::apps {

/// prompt_tokens: how many of the text's tokens are the prompt's. rollout: adds that of all layers
/// to the maps. The caller sets texts, model and device.
SentenceMaps maps_of_text(TokenAttention found, std::size_t prompt_tokens, bool rollout);

}  // namespace mulciber::apps
