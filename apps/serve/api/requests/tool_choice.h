// Whether an answer may, must or must not call a function, and which.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "apps/serve/api/requests/request_fields.h"

namespace mulciber::apps::serve {

/// How a request writes a tool: {"type": "function", "function": {"name": ...}} in chats,
/// {"type": "function", "name": ...} in responses.
enum class ToolForm { kNested, kFlat };

struct ToolChoice {
  enum class Mode { kNone, kAuto, kRequired };
  Mode mode = Mode::kAuto;
  std::optional<std::set<std::string>> names;  // functions that may be called; no value: all
  bool hides_others = false;                   // the model is offered these functions alone

  bool allows(const std::string& name) const { return !names || names->contains(name); }
};

/// "tool_choice": none, auto, required, a function, or allowed_tools with a mode of their own.
/// Throws ApiError (400), also for a function that is not in "tools".
ToolChoice read_tool_choice(RequestFields& fields, ToolForm form);

}  // namespace mulciber::apps::serve
