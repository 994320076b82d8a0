#include "apps/attention/text_maps.h"

#include <algorithm>
#include <utility>

#include "apps/attention/measures.h"

namespace mulciber::apps {

SentenceMaps maps_of_text(TokenAttention found, std::size_t prompt_tokens, bool rollout) {
  SentenceMaps maps;
  maps.target_tokens = std::move(found.tokens);
  maps.prompt_tokens = prompt_tokens;
  SentenceMaps::Kind kind = {"decoder",    found.layers, found.heads,
                             found.length, found.length, std::move(found.weights)};
  if (std::ranges::any_of(found.windows, [](uint32_t window) { return window > 0; }))
    kind.windows.assign(found.windows.begin(), found.windows.end());
  maps.kinds.push_back(std::move(kind));
  if (rollout) maps.kinds.push_back(attention_rollout(maps).front());
  return maps;
}

}  // namespace mulciber::apps
