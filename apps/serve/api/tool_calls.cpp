#include "apps/serve/api/tool_calls.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "apps/serve/api/call_heads.h"
#include "apps/serve/api/pythonic_calls.h"
#include "apps/serve/http/ids.h"
#include "checkpoints/json.h"
#include "mulciber/error.h"

namespace mulciber::apps::serve {
namespace {

constexpr std::string_view kTagged = "<tool_call>", kFunction = "<function=";
constexpr std::string_view kCalls = "[TOOL_CALLS]";
constexpr std::string_view kPythonTag = "<|python_tag|>";

/// How many bytes at the end of a text may begin a delimiter.
size_t possible_beginning(std::string_view text, std::string_view delimiter) {
  for (size_t size = std::min(text.size(), delimiter.size() - 1); size > 0; --size)
    if (text.ends_with(delimiter.substr(0, size))) return size;
  return 0;
}

/// The position behind the brace that ends an object, of which some members were read; npos: the
/// brace has not come yet.
size_t end_of_object(std::string_view text, size_t at) {
  size_t depth = 1;
  bool in_text = false;
  for (; at < text.size() && depth > 0; ++at) {
    const char c = text[at];
    if (c == '\\' && in_text) ++at;
    if (c == '"') in_text = !in_text;
    if (in_text) continue;
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
  }
  return depth > 0 ? std::string_view::npos : at;
}

}  // namespace

std::string ToolCallReader::push(const std::string& text) {
  if (tools_.empty()) return text;
  held_ += text;
  std::string shown;
  while (!enough() && advance(shown)) {
  }
  return shown;
}

/// Returns false where more text is needed.
bool ToolCallReader::advance(std::string& shown) {
  switch (state_) {
    case State::kText: return read_text(shown);
    case State::kHead: return read_head(shown);
    case State::kWhole: return read_whole(shown);
    case State::kArguments: return read_arguments();
    case State::kParameters: return read_parameters(shown);
    default: return read_tail();
  }
}

/// Moves text out of held_. Blanks beside calls are dropped.
void ToolCallReader::show(size_t size, std::string& shown) {
  const std::string text = held_.substr(0, size);
  const bool blank = trimmed(text).empty();
  held_.erase(0, size);
  if (blank && calls_ > 0) return;
  shown += text;
  begun_ = begun_ || !blank;
}

bool ToolCallReader::read_text(std::string& shown) {
  if (!begun_ && calls_ == 0) {
    const size_t begin = skip_blanks(held_, 0);
    if (begin == held_.size()) return false;
    if (read_undelimited()) return state_ == State::kHead;
  }
  const size_t tagged = held_.find(kTagged), function = held_.find(kFunction),
               calls = held_.find(kCalls);
  const size_t delimiter = std::min({tagged, function, calls});
  if (delimiter == std::string::npos) {
    const size_t keep =
        std::max({possible_beginning(held_, kTagged), possible_beginning(held_, kFunction),
                  possible_beginning(held_, kCalls)});
    // Blanks before a call are recognized as such once the call comes.
    const size_t end = held_.size() - keep;
    if (calls_ == 0 || !trimmed(std::string_view(held_).substr(0, end)).empty()) show(end, shown);
    return false;
  }
  if (begun_ || !trimmed(std::string_view(held_).substr(0, delimiter)).empty())
    show(delimiter, shown);
  else
    held_.erase(0, delimiter);
  if (delimiter == calls) return read_calls_delimiter(shown);
  form_ = delimiter == tagged ? Form::kTagged : Form::kFunction;
  head_ = form_ == Form::kTagged ? kTagged.size() : kFunction.size();
  state_ = State::kHead;
  return true;
}

/// Whether an answer begins, or may begin, with a call that has no delimiters around it. A call
/// behind [TOOL_CALLS] is not one of these.
bool ToolCallReader::read_undelimited() {
  const size_t begin = skip_blanks(held_, 0);
  const std::string_view text = std::string_view(held_).substr(begin);
  for (const std::string_view delimiter : {kCalls, kPythonTag})
    if (text.size() < delimiter.size() && delimiter.starts_with(text)) return true;
  if (text.starts_with(kCalls)) return false;
  const bool tag = text.starts_with(kPythonTag);
  const CallHead::Is is = read_beginning(begin + (tag ? kPythonTag.size() : 0));
  return is != CallHead::kOther;
}

/// Reads the beginning of a call without an end delimiter: a bare or a named one. A bare one may
/// turn out to be text.
CallHead::Is ToolCallReader::read_beginning(size_t at) {
  head_ = skip_blanks(held_, at);
  in_list_ = false;
  if (head_ == held_.size()) return CallHead::kMore;
  const bool bare = held_[head_] == '{' || held_[head_] == '[';
  if (!bare) {
    const CallHead named = read_named_head(std::string_view(held_).substr(head_), tools_);
    if (named.is != CallHead::kCall) return named.is;
  }
  form_ = bare ? Form::kBare : Form::kNamed;
  state_ = State::kHead;
  return CallHead::kCall;
}

/// Reads what follows [TOOL_CALLS], at any position of the answer.
bool ToolCallReader::read_calls_delimiter(std::string& shown) {
  const CallHead::Is is = read_beginning(kCalls.size());
  if (is == CallHead::kOther) leave_as_text(kCalls.size(), shown);
  return is != CallHead::kMore;
}

bool ToolCallReader::read_head(std::string& shown) {
  if (form_ == Form::kBare && !in_list_) {
    const size_t begin = skip_blanks(held_, head_);
    if (begin == held_.size()) return false;
    in_list_ = held_[begin] == '[';
    if (in_list_) head_ = begin + 1;
  }
  if (form_ == Form::kBare && in_list_) {
    const CallHead::Is is = read_item_beginning(std::string_view(held_).substr(head_), tools_);
    if (is == CallHead::kMore) return false;
    if (is == CallHead::kOther) {
      leave_as_text(head_, shown);
      return true;
    }
  }
  if (form_ == Form::kTagged) {
    // The tags of a call may stand around a function.
    const size_t begin = skip_blanks(held_, head_);
    const std::string_view rest = std::string_view(held_).substr(begin);
    if (rest.size() < kFunction.size() && kFunction.starts_with(rest)) return false;
    if (rest.starts_with(kFunction)) {
      form_ = Form::kFunction;
      head_ = begin + kFunction.size();
    }
  }
  const std::string head = held_.substr(head_);
  if (form_ == Form::kFunction) return read_function_head(head, shown);
  return begin_at(form_ == Form::kNamed ? read_named_head(head, tools_) : read_json_head(head));
}

bool ToolCallReader::begin_at(const CallHead& found) {
  if (found.is == CallHead::kMore) return false;
  if (found.is == CallHead::kCall && tools_.contains(found.name)) {
    begin_call(found.name, head_ + found.arguments, State::kArguments);
  } else {
    state_ = State::kWhole;
  }
  return true;
}

bool ToolCallReader::read_function_head(std::string_view head, std::string& shown) {
  const size_t end = head.find('>');
  if (end == std::string_view::npos) return false;
  const std::string name(trimmed(head.substr(0, end)));
  const size_t begin = skip_blanks(head, end + 1);
  const std::string_view rest = head.substr(begin);
  if (tools_.contains(name)) {
    if (rest.starts_with('{')) {
      begin_call(name, head_ + begin, State::kArguments);
      return true;
    }
    if (rest.starts_with(kFunctionEnd)) {
      begin_call(name, head_ + begin, State::kTail);
      pieces_.back().arguments = "{}";
      return true;
    }
    if (kFunctionEnd.starts_with(rest)) return false;
    if (rest.starts_with(kParameter)) {
      head_ += begin;
      function_ = name;
      state_ = State::kParameters;
      return true;
    }
    if (kParameter.starts_with(rest)) return false;
  }
  leave_as_text(head_, shown);
  return true;
}

bool ToolCallReader::read_parameters(std::string& shown) {
  const ParameterCall found =
      serve::read_parameters(std::string_view(held_).substr(head_), tools_.at(function_));
  if (found.is == ParameterCall::kMore) return false;
  if (found.is == ParameterCall::kOther) {
    leave_as_text(head_, shown);
    return true;
  }
  // The end delimiter is read behind the arguments, as in other forms.
  begin_call(function_, head_ + found.end, State::kTail);
  pieces_.back().arguments = found.arguments;
  return true;
}

/// From then on arguments are reported.
void ToolCallReader::begin_call(const std::string& name, size_t erased, State next) {
  pieces_.push_back({calls_++, new_id("call"), name, ""});
  held_.erase(0, erased);
  depth_ = 0;
  in_text_ = escaped_ = false;
  state_ = next;
}

/// Returns what looked like the beginning of a call to the text.
void ToolCallReader::leave_as_text(size_t size, std::string& shown) {
  state_ = State::kText;
  show(size, shown);
}

/// Reads a call whose name does not come first, once it is complete.
bool ToolCallReader::read_whole(std::string& shown) {
  if (form_ != Form::kTagged) return false;
  const size_t end = held_.find(kTaggedEnd, head_);
  if (end == std::string::npos) return false;
  if (take_json(std::string_view(held_).substr(head_, end - head_))) {
    held_.erase(0, end + kTaggedEnd.size());
    state_ = State::kText;
  } else {
    leave_as_text(end + kTaggedEnd.size(), shown);
  }
  return true;
}

bool ToolCallReader::read_arguments() {
  if (held_.empty()) return false;
  std::string arguments;
  size_t at = 0;
  do {
    const char c = held_[at++];
    if (!in_text_ && kCallBlanks.find(c) != std::string_view::npos) continue;
    arguments += c;
    if (in_text_) {
      in_text_ = escaped_ || c != '"';
      escaped_ = !escaped_ && c == '\\';
    } else if (c == '{' || c == '[') {
      ++depth_;
    } else if (c == '}' || c == ']') {
      --depth_;
    } else {
      in_text_ = c == '"';
    }
  } while (depth_ > 0 && at < held_.size());
  held_.erase(0, at);
  if (!pieces_.empty() && pieces_.back().index + 1 == calls_)
    pieces_.back().arguments += arguments;
  else if (!arguments.empty())
    pieces_.push_back({calls_ - 1, "", "", arguments});
  if (depth_ > 0) return false;
  state_ = State::kTail;
  return true;
}

/// Reads what follows the arguments.
bool ToolCallReader::read_tail() {
  size_t at = skip_blanks(held_, 0);
  if (at == held_.size()) return false;
  if (holds_json() && (held_[at] == '}' || held_[at] == ',')) {
    at = end_of_object(held_, at);
    if (at == std::string::npos) return false;
    at = skip_blanks(held_, at);
  }
  const std::string_view rest = std::string_view(held_).substr(at);
  if (form_ == Form::kBare) return read_bare_tail(at);
  if (form_ == Form::kNamed) return read_named_tail(at);
  const std::string_view end = form_ == Form::kFunction ? kFunctionEnd : kTaggedEnd;
  if (rest.size() < end.size() && end.starts_with(rest)) return false;
  held_.erase(0, at + (rest.starts_with(end) ? end.size() : 0));
  // The end tag of a call may follow a function, even where its start tag was left out.
  if (form_ == Form::kFunction)
    form_ = Form::kAround;
  else
    state_ = State::kText;
  return true;
}

/// Another call may follow directly.
bool ToolCallReader::read_named_tail(size_t at) {
  const std::string_view rest = std::string_view(held_).substr(at);
  if (rest.size() < kCalls.size() && kCalls.starts_with(rest)) return false;
  head_ = skip_blanks(held_, at + (rest.starts_with(kCalls) ? kCalls.size() : 0));
  if (head_ == held_.size()) return false;
  const CallHead next = read_named_head(std::string_view(held_).substr(head_), tools_);
  if (next.is == CallHead::kMore) return false;
  if (next.is == CallHead::kOther) held_.erase(0, at);
  state_ = next.is == CallHead::kCall ? State::kHead : State::kText;
  return true;
}

/// Another call may follow, in a list or behind a semicolon.
bool ToolCallReader::read_bare_tail(size_t at) {
  if (at == held_.size()) return false;
  const char next = held_[at];
  const bool goes_on = next == (in_list_ ? ',' : ';') || (!in_list_ && next == '{');
  held_.erase(0, at + (next == '{' || (!goes_on && next != ']') ? 0 : 1));
  head_ = 0;
  state_ = goes_on ? State::kHead : State::kText;
  return true;
}

std::string ToolCallReader::finish() {
  if (tools_.empty() || enough()) return {};
  std::string rest = std::exchange(held_, {});
  if (state_ == State::kTail || state_ == State::kArguments) return {};
  if (state_ == State::kText) return calls_ > 0 && trimmed(rest).empty() ? std::string() : rest;
  // The end delimiter of the last call may be the token that ended the answer.
  std::string inside = rest.substr(head_);
  if (form_ == Form::kBare && in_list_) inside = "[" + inside;
  if (form_ == Form::kBare && trimmed(inside).empty()) return {};
  if (holds_json() && take_json(inside)) return {};
  return rest;
}

/// Takes calls whose text is complete.
bool ToolCallReader::take_json(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> found;
  try {
    Json calls = parse_json(text, "a call");
    if (!calls.is_array()) calls = Json::array({std::move(calls)});
    for (const Json& call : calls) {
      const bool named = call.is_object() && call.contains("name") && call["name"].is_string();
      if (!named) return false;
      Json arguments = Json::object();
      for (const char* field : {"arguments", "parameters"})
        if (call.contains(field) && !call[field].is_null()) arguments = call[field];
      found.emplace_back(call["name"].get<std::string>(), arguments.is_string()
                                                              ? arguments.get<std::string>()
                                                              : json_line(arguments));
    }
  } catch (const ModelError&) {
    if (auto pythonic = read_pythonic_calls(text)) found = std::move(*pythonic);
  }
  for (const auto& call : found)
    if (!tools_.contains(call.first)) return false;
  for (const auto& [name, arguments] : found)
    pieces_.push_back({calls_++, new_id("call"), name, arguments});
  return !found.empty();
}

void add_pieces(std::vector<CallPiece>& calls, const std::vector<CallPiece>& pieces) {
  for (const CallPiece& piece : pieces) {
    if (piece.index == calls.size())
      calls.push_back(piece);
    else
      calls.at(piece.index).arguments += piece.arguments;
  }
}

ToolSchemas tool_schemas(const std::string& tools_json) {
  ToolSchemas schemas;
  if (tools_json.empty()) return schemas;
  for (const Json& tool : Json::parse(tools_json)) {
    const Json& function = tool.at("function");
    schemas.emplace(function.at("name").get<std::string>(), function.value("parameters", Json()));
  }
  return schemas;
}

}  // namespace mulciber::apps::serve
