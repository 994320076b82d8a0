// Calls of tools in a model's answer: the forms that chat templates teach.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "apps/serve/answer_format.h"

namespace mulciber::apps::serve {

/// Takes calls out of an answer as its text comes:
///  - Hermes, Qwen: <tool_call>{"name": ..., "arguments": {...}}</tool_call>, once or more;
///  - Mistral: [TOOL_CALLS][{"name": ..., "arguments": {...}}, ...];
///  - Llama 3: {"name": ..., "parameters": {...}}, perhaps behind <|python_tag|>.
/// Of the last two, the marks are special tokens that may be missing in the text: an answer that
/// begins with a bracket is held back to its end. What does not turn out to be calls of known tools
/// stays text.
class ToolCallReader {
 public:
  /// tools: names of those that were offered; none: all is text.
  explicit ToolCallReader(std::set<std::string> tools) : tools_(std::move(tools)) {}

  /// The text that is certain to be no part of a call.
  std::string push(const std::string& text);
  /// What was held back and is none. After it, calls() is complete.
  std::string finish();
  const std::vector<ToolCall>& calls() const { return calls_; }

 private:
  bool take_marked(std::string& shown);
  bool take_json(std::string_view text);

  std::set<std::string> tools_;
  std::string held_;
  bool begun_ = false;  // something other than blanks was shown
  std::vector<ToolCall> calls_;
};

/// Of a list of tools as OpenAI has it.
std::set<std::string> tool_names(const std::string& tools_json);

}  // namespace mulciber::apps::serve
