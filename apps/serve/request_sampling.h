// How tokens are chosen, as the bodies of chats, completions and responses say it alike.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "apps/serve/completion_request.h"
#include "apps/serve/request_fields.h"

namespace mulciber::apps::serve {

constexpr uint64_t kMostTokens = 1u << 24;  // of an answer, as requests may say

// Each throws ApiError (400) naming the field.
void read_sampling(RequestFields& fields, SamplingOptions& sampling);
std::vector<std::pair<uint32_t, float>> read_logit_bias(RequestFields& fields);
/// lora.
std::vector<AdapterScale> read_adapters(RequestFields& fields);
/// chat_template_kwargs.
void read_template_variables(RequestFields& fields, CompletionRequest& request);

}  // namespace mulciber::apps::serve
