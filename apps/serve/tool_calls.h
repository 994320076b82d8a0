// Calls of tools in a model's answer: the forms that chat templates teach.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/serve/answer_format.h"

namespace mulciber::apps::serve {

/// Takes calls out of an answer as its text comes:
///  - Hermes, Qwen: <tool_call>{"name": ..., "arguments": {...}}</tool_call>, once or more;
///  - functions: <function=NAME>{...}</function>, as Llama 3.1 writes calls of a user's functions;
///  - Mistral: [TOOL_CALLS][{"name": ..., "arguments": {...}}, ...];
///  - Llama 3: {"name": ..., "parameters": {...}}, perhaps behind <|python_tag|>;
///  - Llama 3.2 and 4: [NAME(x=1, y="a"), ...].
/// Of the last three, the marks are special tokens that may be missing in the text. A call whose
/// name comes first is told of at once, its arguments as they are written, without blanks; another
/// once it is complete. What does not turn out to be a call of a known tool stays text.
class ToolCallReader {
 public:
  /// tools: names of those that were offered; none: all is text.
  explicit ToolCallReader(std::set<std::string> tools) : tools_(std::move(tools)) {}

  /// The text that is certain to be no part of a call.
  std::string push(const std::string& text);
  /// What was held back and is none.
  std::string finish();
  /// What came of calls since it was asked last.
  std::vector<CallPiece> take() { return std::exchange(pieces_, {}); }
  /// Whether the answer has calls, the last of which is not cut off.
  bool called() const { return calls_ > 0 && state_ != State::kArguments; }

 private:
  enum class State { kText, kHead, kWhole, kArguments, kTail };
  enum class Form { kTagged, kFunction, kBare };

  bool advance(std::string& shown);
  bool read_text(std::string& shown);
  bool read_bare_mark();
  bool read_head(std::string& shown);
  bool read_json_head(std::string_view head);
  bool read_function_head(std::string_view head, std::string& shown);
  bool read_whole(std::string& shown);
  bool read_arguments();
  bool read_tail();
  bool read_bare_tail(size_t at);

  void begin_call(const std::string& name, size_t erased, State next);
  void leave_as_text(size_t size, std::string& shown);
  void show(size_t size, std::string& shown);
  bool take_json(std::string_view text);

  std::set<std::string> tools_;
  State state_ = State::kText;
  Form form_ = Form::kTagged;
  std::string held_;
  size_t head_ = 0;       // where a call's head begins in held_, behind its mark
  bool in_list_ = false;  // of bare calls
  bool begun_ = false;    // something other than blanks was shown
  size_t calls_ = 0;
  // Of arguments that come in:
  size_t depth_ = 0;
  bool in_text_ = false, escaped_ = false;
  std::vector<CallPiece> pieces_;
};

/// Of a list of tools as OpenAI has it.
std::set<std::string> tool_names(const std::string& tools_json);

}  // namespace mulciber::apps::serve
