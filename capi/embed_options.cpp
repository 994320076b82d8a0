// Options of text embeddings in the C interface.
#include "capi/embed_options.h"

#include <string>
#include <utility>

#include "capi/handles.h"
#include "capi/text_batches.h"
#include "mulciber/error.h"

namespace mulciber::c {
namespace {

constexpr std::pair<MulciberPooling, Pooling> kPoolings[] = {
    {MULCIBER_POOLING_MEAN, Pooling::kMean},
    {MULCIBER_POOLING_FIRST, Pooling::kFirst},
    {MULCIBER_POOLING_POOLER, Pooling::kPooler},
    {MULCIBER_POOLING_LAST, Pooling::kLast},
    {MULCIBER_POOLING_MAXIMUM, Pooling::kMax},
    {MULCIBER_POOLING_MEAN_SQRT_LENGTH, Pooling::kMeanSqrtLength},
    {MULCIBER_POOLING_WEIGHTED_MEAN, Pooling::kWeightedMean}};

std::optional<Pooling> chosen_pooling(MulciberPooling pooling) {
  if (pooling == MULCIBER_POOLING_DEFAULT) return std::nullopt;
  for (const auto& [shown, known] : kPoolings)
    if (shown == pooling) return known;
  refuse_enumerator("pooling", pooling, "MulciberPooling");
}

/// Options for tasks too.
EmbedOptions options_of_texts(const MulciberEmbedInfo& info) {
  if (info.prompt && info.prompt_name)
    throw SettingError("prompt_name", "is given beside prompt", "give NULL for one of them");
  EmbedOptions options;
  options.pooling = chosen_pooling(info.pooling);
  if (info.set_normalize) options.normalize = info.normalize != 0;
  if (info.prompt) options.prompt = info.prompt;
  if (info.prompt_name) options.prompt_name = info.prompt_name;
  return options;
}

}  // namespace

MulciberPooling shown_pooling(Pooling pooling) {
  for (const auto& [shown, known] : kPoolings)
    if (known == pooling) return shown;
  return MULCIBER_POOLING_DEFAULT;
}

EmbedOptions embed_options(const MulciberEmbedInfo& info) {
  if (info.embeddings)
    throw SettingError("embeddings", "are given beside texts", "begin a task with them");
  EmbedOptions options = options_of_texts(info);
  options.batch = text_batch_options(info);
  options.batch.truncate = info.refuse_long == 0;
  options.dimensions = info.dimensions;
  return options;
}

EmbedOptions embedding_task_options(const MulciberEmbedInfo& info) {
  for (const auto& [set, name] :
       {std::pair(info.dimensions > 0, "dimensions"),
        std::pair(info.batch_tokens > 0, "batch_tokens"),
        std::pair(info.batch_texts > 0, "batch_texts"), std::pair(info.ids != nullptr, "ids"),
        std::pair(info.on_progress != nullptr, "on_progress"),
        std::pair(info.cancel != nullptr, "cancel")})
    if (set)
      throw SettingError(std::string("MulciberEmbedInfo::") + name,
                         "is of calls that compute at once", "leave it 0 or NULL");
  EmbedOptions options = options_of_texts(info);
  options.batch.truncate = info.refuse_long == 0;
  return options;
}

}  // namespace mulciber::c
