// Options of text embeddings in the C interface.
#pragma once

#include "mulciber/c/text_encoder.h"
#include "mulciber/text_encoder.h"

namespace mulciber::c {

MulciberPooling shown_pooling(Pooling pooling);

/// Options of calls that compute at once.
EmbedOptions embed_options(const MulciberEmbedInfo& info);

/// Options of tasks. Throws SettingError naming a field of calls that compute at once.
EmbedOptions embedding_task_options(const MulciberEmbedInfo& info);

}  // namespace mulciber::c
