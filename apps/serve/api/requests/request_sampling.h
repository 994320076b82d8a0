// Reads the fields that chats, completions and responses share: which model answers, and how tokens
// are chosen.
#pragma once

#include <cstdint>
#include <vector>

#include "apps/serve/api/requests/completion_request.h"
#include "apps/serve/api/requests/request_fields.h"

namespace mulciber::apps::serve {

constexpr uint64_t kMostTokens = 1u << 24;  // most tokens of an answer in a request

// Each of these throws ApiError (400) naming the field.

/// Reads model, stream, lora, sampling, logit_bias, ignore_eos, prompt_lookup, draft,
/// draft_tokens.
void read_generation(RequestFields& fields, CompletionRequest& request);
/// Reads lora.
std::vector<AdapterScale> read_adapters(RequestFields& fields);
/// Reads chat_template_kwargs.
void read_template_variables(RequestFields& fields, CompletionRequest& request);

}  // namespace mulciber::apps::serve
