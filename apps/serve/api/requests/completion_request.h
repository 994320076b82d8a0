// Requests to a language model: the bodies of /v1/chat/completions and /v1/completions.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/cli/sampling_options.h"
#include "apps/serve/api/requests/request_fields.h"
#include "mulciber/grammar.h"
#include "mulciber/load_options.h"

namespace mulciber::apps::serve {

struct CompletionRequest {
  std::string model;  // empty: the only model
  bool chat = false;
  std::vector<TextOrIds> prompts;  // for completions; chats have none
  bool prompts_only = false;       // nothing is generated: an echo
  /// For chats: messages with role and content, and tool_calls where there are some,
  /// in the form that chat templates take: arguments of calls are objects, and contents are texts,
  /// or lists of parts where images are among them, whose URLs take_images() leaves out.
  nlohmann::json messages = nlohmann::json::array();
  const char* messages_field = "messages";  // the name of the field in errors
  bool one_call = false;                    // at most one tool call, whatever the model writes
  std::string tools_json;  // a JSON list; empty: no tools, or tool_choice is "none"
  /// Further variables of the chat template as JSON texts.
  std::map<std::string, std::string> template_variables;

  uint32_t n = 1;           // answers for each prompt
  uint32_t best_of = 0;     // answers that are sampled, of which the n likeliest are returned; 0: n
  uint32_t max_tokens = 0;  // 0: as many as the context has room for
  SamplingOptions sampling;
  std::vector<std::string> stop;
  std::vector<std::pair<uint32_t, float>> logit_bias;
  std::vector<AdapterScale> adapters;         // besides the one in the model's name
  std::optional<Grammar> grammar;             // for answers
  std::optional<uint32_t> log_probabilities;  // how many of the likeliest are returned
  bool tells_probabilities = false;           // false: they only choose the best answers
  bool echo = false;                          // the answer begins with the prompt
  bool ignore_end = false;
  std::optional<uint32_t> prompt_lookup,
      draft_tokens;           // see BatchRequest; none: the server's defaults
  std::optional<bool> draft;  // none: where the model has one
  bool stream = false, include_usage = false;

  uint32_t drawn() const { return best_of > 0 ? best_of : n; }
};

/// Throws ApiError (400) naming the field: for JSON that cannot be read, values out of range,
/// fields that OpenAI does not know, and fields that are not supported here.
CompletionRequest parse_chat_request(std::string_view body);
CompletionRequest parse_completion_request(std::string_view body);

}  // namespace mulciber::apps::serve
