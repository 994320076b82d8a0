#include "apps/serve/api/call_heads.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "apps/serve/api/parameter_value.h"
#include "checkpoints/json.h"

namespace mulciber::apps::serve {
namespace {

constexpr std::string_view kParameterEnd = "</parameter>";

/// Whether a text begins with a delimiter; no value where the text ends within it.
std::optional<bool> begins_with(std::string_view text, std::string_view delimiter) {
  if (text.size() < delimiter.size() && delimiter.starts_with(text)) return std::nullopt;
  return text.starts_with(delimiter);
}

class JsonHeadReader {
 public:
  explicit JsonHeadReader(std::string_view text) : text_(text) {}

  CallHead read() {
    CallHead head;
    if (!character('{') || key() != "name" || !character(':')) return ended(head);
    const std::optional<std::string> name = string();
    if (!name || !character(',')) return ended(head);
    const std::string arguments = key();
    if ((arguments != "arguments" && arguments != "parameters") || !character(':'))
      return ended(head);
    at_ = skip_blanks(text_, at_);
    head.arguments = at_;
    if (!character('{')) return ended(head);
    head.is = CallHead::kCall;
    head.name = *name;
    return head;
  }

 private:
  CallHead ended(CallHead& head) const {
    head.is = more_ ? CallHead::kMore : CallHead::kOther;
    return head;
  }
  bool character(char wanted) {
    at_ = skip_blanks(text_, at_);
    more_ = at_ == text_.size();
    return !more_ && text_[at_++] == wanted;
  }
  std::string key() { return string().value_or(""); }
  /// Names have no escapes; a name with escapes is not one of a known tool.
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

/// Whether a tool's name may begin with the text.
bool begins_a_name(std::string_view text, const ToolSchemas& tools) {
  return std::ranges::any_of(tools, [&](const auto& tool) { return tool.first.starts_with(text); });
}

/// Whether a text begins with the end of a function, which may be left out before the end of the
/// call; no value where more text is needed.
std::optional<bool> ended(std::string_view text) {
  const std::optional<bool> function = begins_with(text, kFunctionEnd),
                            call = begins_with(text, kTaggedEnd);
  if (function == true || call == true) return true;
  return function && call ? std::optional(false) : std::nullopt;
}

}  // namespace

size_t skip_blanks(std::string_view text, size_t at) {
  return std::min(text.find_first_not_of(kCallBlanks, at), text.size());
}

std::string_view trimmed(std::string_view text) {
  const size_t begin = skip_blanks(text, 0);
  if (begin == text.size()) return {};
  return text.substr(begin, text.find_last_not_of(kCallBlanks) + 1 - begin);
}

CallHead read_json_head(std::string_view text) { return JsonHeadReader(text).read(); }

CallHead read_named_head(std::string_view text, const ToolSchemas& tools) {
  CallHead head;
  size_t at = std::min(text.find_first_of("[{"), text.size());  // names have no such brackets
  head.name = trimmed(text.substr(0, at));
  // Blanks may stand before a delimiter: without one "f {" is no call.
  bool needs_delimiter = head.name.size() < at;
  if (at == text.size()) {
    if (begins_a_name(head.name, tools)) head.is = CallHead::kMore;
    return head;
  }
  if (!tools.contains(head.name)) return head;
  for (const std::string_view delimiter : {"[CALL_ID]", "[ARGS]"}) {
    const std::optional<bool> begins = begins_with(text.substr(at), delimiter);
    // Both delimiters begin with the same character.
    if (!begins) head.is = CallHead::kMore;
    if (begins != true) continue;
    head.is = CallHead::kOther;
    needs_delimiter = false;
    at += delimiter.size();
    if (delimiter == "[CALL_ID]") at = std::min(text.find_first_of("[{", at), text.size());
  }
  if (head.is == CallHead::kMore) return head;
  head.arguments = skip_blanks(text, at);
  if (head.arguments == text.size())
    head.is = CallHead::kMore;
  else if (text[head.arguments] == '{' && !needs_delimiter)
    head.is = CallHead::kCall;
  return head;
}

CallHead::Is read_item_beginning(std::string_view text, const ToolSchemas& tools) {
  const size_t begin = skip_blanks(text, 0);
  if (begin == text.size()) return CallHead::kMore;
  if (text[begin] == '{') return CallHead::kCall;
  const size_t end = std::min(text.find('(', begin), text.size());
  const std::string_view name = trimmed(text.substr(begin, end - begin));
  if (end < text.size())
    return tools.contains(std::string(name)) ? CallHead::kCall : CallHead::kOther;
  return begins_a_name(name, tools) ? CallHead::kMore : CallHead::kOther;
}

ParameterCall read_parameters(std::string_view text, const Json& schema) {
  ParameterCall more = {.is = ParameterCall::kMore, .arguments = {}, .end = 0};
  Json arguments = Json::object();
  size_t at = skip_blanks(text, 0);
  while (true) {
    const std::optional<bool> ends = ended(text.substr(at)),
                              goes_on = begins_with(text.substr(at), kParameter);
    if (ends == true)
      return {.is = ParameterCall::kCall, .arguments = json_line(arguments), .end = at};
    if (goes_on != true) return ends && goes_on ? ParameterCall{} : more;
    at += kParameter.size();
    const size_t name_end = text.find('>', at);
    if (name_end == std::string_view::npos) return more;
    const std::string name(trimmed(text.substr(at, name_end - at)));
    const size_t value = name_end + 1;
    // A value may hold the end tag itself: the tag that ends the value stands before another one.
    size_t value_end = value;
    while (true) {
      value_end = text.find(kParameterEnd, value_end);
      if (value_end == std::string_view::npos) return more;
      at = skip_blanks(text, value_end + kParameterEnd.size());
      const std::optional<bool> last = ended(text.substr(at)),
                                next = begins_with(text.substr(at), kParameter);
      if (last == true || next == true) break;
      if (!last || !next) return more;
      value_end += kParameterEnd.size();
    }
    arguments[name] = parameter_value(text.substr(value, value_end - value), schema, name);
  }
}

}  // namespace mulciber::apps::serve
