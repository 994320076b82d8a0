// What the tokens of a language model's text read of one another, as the attention page takes it.
#pragma once

#include <cstddef>

#include "apps/attention/page.h"
#include "mulciber/text_generator.h"

namespace mulciber::apps {

/// prompt_tokens: of the text, how many are the prompt's. rollout: of all layers, beside the maps.
/// Texts, model and device are left to the caller.
SentenceMaps maps_of_text(TokenAttention found, std::size_t prompt_tokens, bool rollout);

}  // namespace mulciber::apps
