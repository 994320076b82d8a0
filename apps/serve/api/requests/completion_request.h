// What a client asks a language model for: the bodies of /v1/chat/completions and /v1/completions.
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
  std::string model;  // empty: the only one
  bool chat = false;
  std::vector<TextOrIds> prompts;  // of a completion; chat: none
  bool prompts_only = false;       // nothing is to be written: an echo
  /// A chat's messages with role and content, and tool_calls where there are some, in the form that
  /// chat templates take: arguments of calls are objects, and contents are texts, or lists of parts
  /// where pictures are among them, whose URLs take_pictures() leaves out.
  nlohmann::json messages = nlohmann::json::array();
  const char* messages_field = "messages";  // that errors name
  bool one_call = false;                    // of tools, whatever the model writes
  std::string tools_json;                   // a JSON list; empty: none, or tool_choice says "none"
  /// Further variables of the chat template as JSON texts.
  std::map<std::string, std::string> template_variables;

  uint32_t n = 1;           // answers for each prompt
  uint32_t best_of = 0;     // so many are drawn, and the n likeliest chosen; 0: n
  uint32_t max_tokens = 0;  // 0: what the context has room for
  SamplingOptions sampling;
  std::vector<std::string> stop;
  std::vector<std::pair<uint32_t, float>> logit_bias;
  std::vector<AdapterScale> adapters;         // beside one that the model's name says
  std::optional<Grammar> grammar;             // of answers
  std::optional<uint32_t> log_probabilities;  // how many of the likeliest beside the chosen
  bool tells_probabilities = false;           // otherwise they only choose the best
  bool echo = false;                          // the answer begins with the prompt
  bool ignore_end = false;
  std::optional<uint32_t> lookup, proposals;  // as BatchRequest; none: as the server is set
  std::optional<bool> draft;                  // none: where the model has one
  bool stream = false, include_usage = false;

  uint32_t drawn() const { return best_of > 0 ? best_of : n; }
};

/// Throws ApiError (400) naming the field: JSON that cannot be read, values out of range, fields
/// that OpenAI does not know, and what is not supported here.
CompletionRequest parse_chat_request(std::string_view body);
CompletionRequest parse_completion_request(std::string_view body);

}  // namespace mulciber::apps::serve
