#include "apps/serve/tool_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <string_view>
#include <utility>

#include "checkpoints/json.h"
#include "mulciber/error.h"

namespace mulciber::apps::serve {
namespace {

constexpr std::string_view kBegin = "<tool_call>", kEnd = "</tool_call>";
constexpr std::string_view kBeforeJson[] = {"[TOOL_CALLS]", "<|python_tag|>"};
constexpr std::string_view kCallBlanks = " \t\r\n";

std::string new_call_id() {
  thread_local std::mt19937_64 random{std::random_device{}()};
  return fmt::format("call_{:016x}", random());
}

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(kCallBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kCallBlanks) + 1 - begin);
}

/// How many bytes at the end of a text may be the beginning of a mark.
size_t possible_beginning(std::string_view text, std::string_view mark) {
  for (size_t size = std::min(text.size(), mark.size() - 1); size > 0; --size)
    if (text.ends_with(mark.substr(0, size))) return size;
  return 0;
}

/// Whether an answer that begins so may be a call without marks around it.
bool may_be_json(std::string_view text) {
  if (text.empty() || text.front() == '{' || text.front() == '[') return true;
  for (const std::string_view mark : kBeforeJson)
    if (mark.starts_with(text) || text.starts_with(mark)) return true;
  return false;
}

}  // namespace

bool ToolCallReader::take_json(std::string_view text) {
  std::vector<ToolCall> found;
  try {
    Json calls = parse_json(text, "a call");
    if (!calls.is_array()) calls = Json::array({std::move(calls)});
    for (const Json& call : calls) {
      const bool named = call.is_object() && call.contains("name") && call["name"].is_string();
      if (!named || !tools_.contains(call["name"].get<std::string>())) return false;
      Json arguments = Json::object();
      for (const char* field : {"arguments", "parameters"})
        if (call.contains(field)) arguments = call[field];
      found.push_back({new_call_id(), call["name"].get<std::string>(),
                       arguments.is_string() ? arguments.get<std::string>() : arguments.dump()});
    }
  } catch (const ModelError&) {
    return false;
  }
  calls_.insert(calls_.end(), found.begin(), found.end());
  return !found.empty();
}

/// One call between marks, once it is complete. What was before it is shown.
bool ToolCallReader::take_marked(std::string& shown) {
  const size_t begin = held_.find(kBegin);
  if (begin == std::string::npos) return false;
  const size_t end = held_.find(kEnd, begin);
  if (end == std::string::npos) return false;
  const size_t inside = begin + kBegin.size();
  const std::string before = held_.substr(0, begin);
  if (!trimmed(before).empty() || begun_) shown += before;
  if (!take_json(std::string_view(held_).substr(inside, end - inside)))
    shown += held_.substr(begin, end + kEnd.size() - begin);
  held_.erase(0, end + kEnd.size());
  return true;
}

std::string ToolCallReader::push(const std::string& text) {
  if (tools_.empty()) return text;
  held_ += text;
  std::string shown;
  while (take_marked(shown)) {
  }
  const bool first = !begun_ && shown.empty() && calls_.empty();
  if (first && may_be_json(trimmed(held_))) return shown;
  size_t keep = held_.find(kBegin);
  if (keep == std::string::npos) keep = held_.size() - possible_beginning(held_, kBegin);
  // Blanks between calls are no text.
  if (calls_.empty() || !trimmed(std::string_view(held_).substr(0, keep)).empty()) {
    shown += held_.substr(0, keep);
    held_.erase(0, keep);
  }
  begun_ = begun_ || !trimmed(shown).empty();
  return shown;
}

std::string ToolCallReader::finish() {
  if (tools_.empty()) return {};
  std::string rest = std::exchange(held_, {});
  std::string_view text = trimmed(rest);
  if (!begun_ && calls_.empty()) {
    for (const std::string_view mark : kBeforeJson)
      if (text.starts_with(mark)) text = trimmed(text.substr(mark.size()));
    if (take_json(text)) return {};
  }
  // A last call whose end mark is the token that ended the answer.
  if (text.starts_with(kBegin) && take_json(text.substr(kBegin.size()))) return {};
  return !calls_.empty() && text.empty() ? std::string() : rest;
}

std::set<std::string> tool_names(const std::string& tools_json) {
  std::set<std::string> names;
  if (tools_json.empty()) return names;
  for (const Json& tool : Json::parse(tools_json))
    names.insert(tool.at("function").at("name").get<std::string>());
  return names;
}

}  // namespace mulciber::apps::serve
