// What the bodies of chats, completions and responses say alike: who answers, and how tokens are
// chosen.
#pragma once

#include <cstdint>
#include <vector>

#include "apps/serve/api/requests/completion_request.h"
#include "apps/serve/api/requests/request_fields.h"

namespace mulciber::apps::serve {

constexpr uint64_t kMostTokens = 1u << 24;  // of an answer, as requests may say

// Each throws ApiError (400) naming the field.

/// model, stream, lora, sampling, logit_bias, ignore_eos, lookup, draft, proposals.
void read_generation(RequestFields& fields, CompletionRequest& request);
/// lora.
std::vector<AdapterScale> read_adapters(RequestFields& fields);
/// chat_template_kwargs.
void read_template_variables(RequestFields& fields, CompletionRequest& request);

}  // namespace mulciber::apps::serve
