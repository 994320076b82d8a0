#include "apps/serve/api/requests/request_grammar.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "apps/serve/api/requests/tool_choice.h"
#include "checkpoints/json.h"
#include "mulciber/error.h"
#include "text/grammar/schema_text.h"

namespace mulciber::apps::serve {
namespace {

/// Holds one grammar at most; errors name its field.
class Choice {
 public:
  void set(const std::string& field, const std::function<Grammar()>& compile) {
    if (made_) refuse(field, fmt::format("{} says what answers may be a second time", field));
    try {
      made_ = compile();
    } catch (const ModelError& error) {
      refuse(field, error.what(), "unsupported_grammar");
    }
  }
  std::optional<Grammar> take() { return std::move(made_); }

 private:
  std::optional<Grammar> made_;
};

/// format: a chat's response_format or the text.format of responses, which has the schema and its
/// name one level higher; `at`: its path in the body.
void read_format(const Json& format, const std::string& at, std::string_view body, bool nested,
                 Choice& choice) {
  std::string where = at;
  std::ranges::replace(where, '/', '.');
  RequestFields outer(format, where);
  const std::string type = outer.text("type").value_or("");
  if (type == "json_object") {
    choice.set(where, [] { return Grammar::json_object(); });
  } else if (type == "json_schema") {
    RequestFields schema(nested ? outer.needed("json_schema") : format,
                         nested ? outer.path("json_schema") : where);
    // Answers are valid whether or not these are set.
    for (const char* name : {"name", "description", "strict"}) schema.ignore(name);
    if (!nested) schema.ignore("type");
    schema.needed("schema");
    schema.finish();
    choice.set(schema.path("schema"), [&] {
      return Grammar::json_schema(
          json_part(body, at + (nested ? "/json_schema/schema" : "/schema")));
    });
    if (!nested) return;
  } else if (type != "text") {
    refuse(where, fmt::format("the type of {} must be text, json_object or json_schema", where),
           "unsupported_parameter");
  }
  outer.finish();
}

void read_text_format(RequestFields& fields, std::string_view body, Choice& choice) {
  const Json* text = fields.find("text");
  if (!text) return;
  RequestFields inner(*text, "text");
  if (const Json* format = inner.find("format"))
    read_format(*format, "text/format", body, false, choice);
  inner.only_usual("verbosity", "medium");
  inner.finish();
}

/// Makes the answer a call, in the form of Llama 3, which every reader of calls takes.
void read_wanted_call(RequestFields& fields, std::string_view body, bool nested, Choice& choice) {
  const ToolChoice wanted = read_tool_choice(fields, nested ? ToolForm::kNested : ToolForm::kFlat);
  if (wanted.mode != ToolChoice::Mode::kRequired) return;
  const Json* tools = fields.find("tools");
  std::string calls;
  for (size_t i = 0; i < tools->size(); ++i) {
    const Json& function = nested ? (*tools)[i]["function"] : (*tools)[i];
    if (!wanted.allows(function["name"].get<std::string>())) continue;
    const std::string parameters =
        function.contains("parameters") && !function["parameters"].empty()
            ? json_part(body, fmt::format("tools/{}{}/parameters", i, nested ? "/function" : ""))
            : std::string(R"({"type": "object"})");
    calls += fmt::format(
        R"({}{{"properties": {{"name": {{"const": {}}}, "parameters": {}}}, "required": ["name", "parameters"], "additionalProperties": false}})",
        calls.empty() ? "" : ", ", function["name"].dump(), parameters);
  }
  if (calls.empty()) refuse("tool_choice", "tool_choice asks for a call, and there are no tools");
  choice.set("tool_choice",
             [&] { return Grammar::json_schema(fmt::format(R"({{"anyOf": [{}]}})", calls)); });
}

}  // namespace

std::optional<Grammar> read_grammar(RequestFields& fields, std::string_view body,
                                    GrammarFields of) {
  Choice choice;
  if (of == GrammarFields::kChat) {
    if (const Json* format = fields.find("response_format"))
      read_format(*format, "response_format", body, true, choice);
  } else if (of == GrammarFields::kResponses) {
    read_text_format(fields, body, choice);
  }
  if (of != GrammarFields::kCompletion)
    read_wanted_call(fields, body, of == GrammarFields::kChat, choice);
  if (const auto text = fields.text("grammar"))
    choice.set("grammar", [&] { return Grammar::gbnf(*text); });
  if (const auto text = fields.text("guided_regex"))
    choice.set("guided_regex", [&] { return Grammar::regex(*text); });
  if (fields.find("guided_json"))
    choice.set("guided_json", [&] { return Grammar::json_schema(json_part(body, "guided_json")); });
  return choice.take();
}

}  // namespace mulciber::apps::serve
