#include "apps/serve/api/requests/tool_choice.h"

#include <fmt/format.h>

#include "checkpoints/json.h"

namespace mulciber::apps::serve {
namespace {

using Mode = ToolChoice::Mode;

/// The name of a function, as tools and choices write it.
std::string read_name(RequestFields& fields, ToolForm form) {
  fields.only("type", "function", "a call is of one function");
  std::string name =
      form == ToolForm::kNested
          ? RequestFields(fields.needed("function"), fields.path("function")).needed_text("name")
          : fields.needed_text("name");
  fields.finish();
  return name;
}

ToolChoice read_allowed(const Json& given, const std::string& where, ToolForm form) {
  RequestFields fields(given, where);
  if (form == ToolForm::kFlat) fields.ignore("type");
  ToolChoice choice = {.names = std::set<std::string>(), .hides_others = true};
  const std::string mode = fields.needed_text("mode");
  if (mode != "auto" && mode != "required")
    refuse(fields.path("mode"), fields.path("mode") + " must be auto or required");
  choice.mode = mode == "required" ? Mode::kRequired : Mode::kAuto;
  const Json& tools = fields.needed("tools");
  if (!tools.is_array() || tools.empty())
    refuse(fields.path("tools"), fields.path("tools") + " must be a list of at least one tool");
  for (size_t i = 0; i < tools.size(); ++i) {
    RequestFields tool(tools[i], fmt::format("{}[{}]", fields.path("tools"), i));
    choice.names->insert(read_name(tool, form));
  }
  fields.finish();
  return choice;
}

ToolChoice read_object(const Json& given, ToolForm form) {
  RequestFields fields(given, "tool_choice");
  if (fields.text("type") != "allowed_tools")
    return {.mode = Mode::kRequired, .names = {{read_name(fields, form)}}};
  if (form == ToolForm::kFlat) return read_allowed(given, "tool_choice", form);
  const Json& allowed = fields.needed("allowed_tools");
  fields.finish();
  return read_allowed(allowed, fields.path("allowed_tools"), form);
}

std::set<std::string> names_of(const Json& tools, ToolForm form) {
  std::set<std::string> names;
  if (!tools.is_array()) return names;
  for (const Json& tool : tools) {
    const Json* function = &tool;
    if (form == ToolForm::kNested && tool.is_object() && tool.contains("function"))
      function = &tool["function"];
    if (!function->is_object() || !function->contains("name")) continue;
    if (const Json& name = (*function)["name"]; name.is_string()) names.insert(name);
  }
  return names;
}

}  // namespace

ToolChoice read_tool_choice(RequestFields& fields, ToolForm form) {
  const Json* wanted = fields.find("tool_choice");
  if (!wanted || *wanted == "auto") return {};
  if (*wanted == "none") return {.mode = Mode::kNone, .names = {}};
  const Json* tools = fields.find("tools");
  if (!tools) refuse("tool_choice", "tool_choice asks for a call, and there are no tools");
  if (*wanted == "required") return {.mode = Mode::kRequired, .names = {}};
  if (!wanted->is_object())
    refuse("tool_choice",
           "tool_choice must be none, auto, required, a function or a list of allowed tools",
           "unsupported_parameter");
  ToolChoice choice = read_object(*wanted, form);
  const std::set<std::string> known = names_of(*tools, form);
  for (const std::string& name : *choice.names) {
    if (!known.contains(name))
      refuse("tool_choice",
             fmt::format("tool_choice names the function '{}', which is not in tools",
                         printable(name)));
  }
  return choice;
}

}  // namespace mulciber::apps::serve
