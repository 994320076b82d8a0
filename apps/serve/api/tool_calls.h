// Tool calls in a model's answer, in the forms that chat templates teach.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/serve/api/call_heads.h"
#include "apps/serve/api/completion_format.h"

namespace mulciber::apps::serve {

/// Takes calls out of an answer as its text comes:
///  - Hermes, Qwen: <tool_call>{"name": ..., "arguments": {...}}</tool_call>, once or more;
///  - functions: <function=NAME>{...}</function>, as Llama 3.1 writes calls of a user's functions;
///  - Qwen 3 Coder: <tool_call><function=NAME><parameter=x>1</parameter></function></tool_call>;
///  - Mistral: [TOOL_CALLS][{"name": ..., "arguments": {...}}, ...], perhaps behind text;
///  - Mistral from its eleventh tokenizer on: [TOOL_CALLS]NAME[ARGS]{...}, once or more, likewise;
///  - Llama 3: {"name": ..., "parameters": {...}}, perhaps behind <|python_tag|>;
///  - Llama 3.2 and 4: [NAME(x=1, y="a"), ...].
/// In the last four forms the delimiters are special tokens, which may be missing in the text. A
/// call whose name comes first and whose arguments are JSON is reported at once, and its arguments
/// as they are written, without blanks; another call is reported once it is complete. Text that
/// does not turn out to be a call of a known tool stays text.
class ToolCallReader {
 public:
  /// tools: the offered ones; none: all is text. only_first: text behind the first call is skipped.
  explicit ToolCallReader(ToolSchemas tools, bool only_first = false)
      : tools_(std::move(tools)), only_first_(only_first) {}

  /// Adds text. Returns the text that certainly is not part of a call.
  std::string push(const std::string& text);
  /// Ends the answer. Returns held-back text that is not part of a call.
  std::string finish();
  /// The pieces of calls since take() was called last.
  std::vector<CallPiece> take() {
    if (only_first_) std::erase_if(pieces_, [](const CallPiece& piece) { return piece.index > 0; });
    return std::exchange(pieces_, {});
  }
  /// Whether the answer has calls, the last of which is complete.
  bool called() const { return calls_ > 0 && state_ != State::kArguments; }
  /// Whether all further text would be skipped.
  bool enough() const { return only_first_ && called(); }

 private:
  enum class State { kText, kHead, kWhole, kArguments, kParameters, kTail };
  enum class Form { kTagged, kFunction, kAround, kBare, kNamed };

  bool advance(std::string& shown);
  bool read_text(std::string& shown);
  bool read_undelimited();
  CallHead::Is read_beginning(size_t at);
  bool read_calls_delimiter(std::string& shown);
  bool read_head(std::string& shown);
  bool begin_at(const CallHead& found);
  bool read_function_head(std::string_view head, std::string& shown);
  bool read_whole(std::string& shown);
  bool read_arguments();
  bool read_parameters(std::string& shown);
  bool read_tail();
  bool read_bare_tail(size_t at);
  bool read_named_tail(size_t at);
  bool holds_json() const { return form_ == Form::kTagged || form_ == Form::kBare; }

  void begin_call(const std::string& name, size_t erased, State next);
  void leave_as_text(size_t size, std::string& shown);
  void show(size_t size, std::string& shown);
  bool take_json(std::string_view text);

  ToolSchemas tools_;
  bool only_first_ = false;
  State state_ = State::kText;
  Form form_ = Form::kTagged;
  std::string held_;
  size_t head_ = 0;       // where a call's head begins in held_, behind its delimiter
  bool in_list_ = false;  // whether bare calls stand in a list
  std::string function_;  // name of the call whose parameters follow
  bool begun_ = false;    // something other than blanks was shown
  size_t calls_ = 0;
  // State of arguments that are being read:
  size_t depth_ = 0;
  bool in_text_ = false, escaped_ = false;
  std::vector<CallPiece> pieces_;
};

/// The schemas of a list of tools in OpenAI's format.
ToolSchemas tool_schemas(const std::string& tools_json);

}  // namespace mulciber::apps::serve
