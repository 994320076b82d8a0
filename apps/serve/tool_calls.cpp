#include "apps/serve/tool_calls.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "apps/serve/ids.h"
#include "apps/serve/pythonic_calls.h"
#include "checkpoints/json.h"
#include "mulciber/error.h"

namespace mulciber::apps::serve {
namespace {

constexpr std::string_view kTagged = "<tool_call>", kTaggedEnd = "</tool_call>";
constexpr std::string_view kFunction = "<function=", kFunctionEnd = "</function>";
constexpr std::string_view kBeforeJson[] = {"[TOOL_CALLS]", "<|python_tag|>"};
constexpr std::string_view kCallBlanks = " \t\r\n";

size_t skip_blanks(std::string_view text, size_t at) {
  return std::min(text.find_first_not_of(kCallBlanks, at), text.size());
}

std::string_view trimmed(std::string_view text) {
  const size_t begin = skip_blanks(text, 0);
  if (begin == text.size()) return {};
  return text.substr(begin, text.find_last_not_of(kCallBlanks) + 1 - begin);
}

/// How many bytes at the end of a text may be the beginning of a mark.
size_t possible_beginning(std::string_view text, std::string_view mark) {
  for (size_t size = std::min(text.size(), mark.size() - 1); size > 0; --size)
    if (text.ends_with(mark.substr(0, size))) return size;
  return 0;
}

/// Behind the brace that ends an object, of which some members were read; npos: it is not there
/// yet.
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

/// The beginning of a call in JSON, as far as it is there: {"name": NAME, "arguments": and where
/// the object behind it begins.
struct JsonHead {
  enum { kMore, kCall, kOther } is = kOther;
  std::string name;
  size_t arguments = 0;
};

class JsonHeadReader {
 public:
  explicit JsonHeadReader(std::string_view text) : text_(text) {}

  JsonHead read() {
    JsonHead head;
    if (!character('{') || key() != "name" || !character(':')) return ended(head);
    const std::optional<std::string> name = string();
    if (!name || !character(',')) return ended(head);
    const std::string arguments = key();
    if ((arguments != "arguments" && arguments != "parameters") || !character(':'))
      return ended(head);
    at_ = skip_blanks(text_, at_);
    head.arguments = at_;
    if (!character('{')) return ended(head);
    head.is = JsonHead::kCall;
    head.name = *name;
    return head;
  }

 private:
  JsonHead ended(JsonHead& head) const {
    head.is = more_ ? JsonHead::kMore : JsonHead::kOther;
    return head;
  }
  bool character(char wanted) {
    at_ = skip_blanks(text_, at_);
    more_ = at_ == text_.size();
    return !more_ && text_[at_++] == wanted;
  }
  std::string key() { return string().value_or(""); }
  /// Names have no escapes; another is no known tool's.
  std::optional<std::string> string() {
    if (!character('"')) return std::nullopt;
    const size_t end = text_.find_first_of("\"\\", at_);
    more_ = end == std::string_view::npos;
    if (more_ || text_[end] == '\\') return std::nullopt;
    const size_t begin = std::exchange(at_, end + 1);
    return std::string(text_.substr(begin, end - begin));
  }

  std::string_view text_;
  size_t at_ = 0;
  bool more_ = false;
};

}  // namespace

std::string ToolCallReader::push(const std::string& text) {
  if (tools_.empty()) return text;
  held_ += text;
  std::string shown;
  while (advance(shown)) {
  }
  return shown;
}

/// False where more text is needed.
bool ToolCallReader::advance(std::string& shown) {
  switch (state_) {
    case State::kText: return read_text(shown);
    case State::kHead: return read_head(shown);
    case State::kWhole: return read_whole(shown);
    case State::kArguments: return read_arguments();
    default: return read_tail();
  }
}

/// Blanks beside calls are no text.
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
    if (read_bare_mark()) return state_ == State::kHead;
  }
  const size_t tagged = held_.find(kTagged), function = held_.find(kFunction);
  const size_t mark = std::min(tagged, function);
  if (mark == std::string::npos) {
    size_t keep =
        std::max(possible_beginning(held_, kTagged), possible_beginning(held_, kFunction));
    // Blanks before a call are known as such once it is there.
    const size_t end = held_.size() - keep;
    if (calls_ == 0 || !trimmed(std::string_view(held_).substr(0, end)).empty()) show(end, shown);
    return false;
  }
  if (begun_ || !trimmed(std::string_view(held_).substr(0, mark)).empty())
    show(mark, shown);
  else
    held_.erase(0, mark);
  form_ = mark == tagged ? Form::kTagged : Form::kFunction;
  head_ = form_ == Form::kTagged ? kTagged.size() : kFunction.size();
  state_ = State::kHead;
  return true;
}

/// Whether an answer begins, or may begin, as calls do that have no marks around them.
bool ToolCallReader::read_bare_mark() {
  const std::string_view text = trimmed(held_);
  size_t mark = 0;
  for (const std::string_view before : kBeforeJson) {
    if (text.size() < before.size() && before.starts_with(text)) return true;
    if (text.starts_with(before)) mark = before.size();
  }
  if (mark == 0 && text.front() != '{' && text.front() != '[') return false;
  form_ = Form::kBare;
  head_ = skip_blanks(held_, 0) + mark;
  state_ = State::kHead;
  return true;
}

bool ToolCallReader::read_head(std::string& shown) {
  if (form_ == Form::kBare && !in_list_) {
    const size_t begin = skip_blanks(held_, head_);
    if (begin == held_.size()) return false;
    in_list_ = held_[begin] == '[';
    if (in_list_) head_ = begin + 1;
  }
  const std::string head = held_.substr(head_);
  return form_ == Form::kFunction ? read_function_head(head, shown) : read_json_head(head);
}

bool ToolCallReader::read_json_head(std::string_view head) {
  const JsonHead found = JsonHeadReader(head).read();
  if (found.is == JsonHead::kMore) return false;
  if (found.is == JsonHead::kCall && tools_.contains(found.name)) {
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
  }
  leave_as_text(head_, shown);
  return true;
}

/// Arguments are told of from then on.
void ToolCallReader::begin_call(const std::string& name, size_t erased, State next) {
  pieces_.push_back({calls_++, new_id("call"), name, ""});
  held_.erase(0, erased);
  depth_ = 0;
  in_text_ = escaped_ = false;
  state_ = next;
}

/// What looked like a call's beginning is none.
void ToolCallReader::leave_as_text(size_t size, std::string& shown) {
  state_ = State::kText;
  show(size, shown);
}

/// A call whose name does not come first is looked at once it is complete.
bool ToolCallReader::read_whole(std::string& shown) {
  if (form_ == Form::kBare) return false;
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

/// Behind the arguments.
bool ToolCallReader::read_tail() {
  size_t at = skip_blanks(held_, 0);
  if (at == held_.size()) return false;
  if (form_ != Form::kFunction && (held_[at] == '}' || held_[at] == ',')) {
    at = end_of_object(held_, at);
    if (at == std::string::npos) return false;
    at = skip_blanks(held_, at);
  }
  const std::string_view rest = std::string_view(held_).substr(at);
  if (form_ == Form::kBare) return read_bare_tail(at);
  const std::string_view end = form_ == Form::kTagged ? kTaggedEnd : kFunctionEnd;
  if (rest.size() < end.size() && end.starts_with(rest)) return false;
  held_.erase(0, at + (rest.starts_with(end) ? end.size() : 0));
  state_ = State::kText;
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
  if (tools_.empty()) return {};
  std::string rest = std::exchange(held_, {});
  if (state_ == State::kTail || state_ == State::kArguments) return {};
  if (state_ == State::kText) return calls_ > 0 && trimmed(rest).empty() ? std::string() : rest;
  // A last call whose end mark is the token that ended the answer.
  std::string inside = rest.substr(head_);
  if (form_ == Form::kBare && in_list_) inside = "[" + inside;
  if (form_ == Form::kBare && trimmed(inside).empty()) return {};
  if (form_ != Form::kFunction && take_json(inside)) return {};
  return rest;
}

/// Calls that are there as a whole.
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
        if (call.contains(field)) arguments = call[field];
      found.emplace_back(call["name"].get<std::string>(),
                         arguments.is_string() ? arguments.get<std::string>() : arguments.dump());
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

std::set<std::string> tool_names(const std::string& tools_json) {
  std::set<std::string> names;
  if (tools_json.empty()) return names;
  for (const Json& tool : Json::parse(tools_json))
    names.insert(tool.at("function").at("name").get<std::string>());
  return names;
}

}  // namespace mulciber::apps::serve
