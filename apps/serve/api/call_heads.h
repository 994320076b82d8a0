// Reads how tool calls begin, in the forms that models write.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace mulciber::apps::serve {

/// The functions that a model was offered: their names, and the JSON schemas of their arguments.
using ToolSchemas = std::map<std::string, nlohmann::json>;

inline constexpr std::string_view kTaggedEnd = "</tool_call>", kFunctionEnd = "</function>",
                                  kParameter = "<parameter=";
inline constexpr std::string_view kCallBlanks = " \t\r\n";
size_t skip_blanks(std::string_view text, size_t at);
std::string_view trimmed(std::string_view text);

/// The beginning of a call, as far as the text goes.
struct CallHead {
  enum Is { kMore, kCall, kOther } is = kOther;
  std::string name;
  size_t arguments = 0;  // where the object of its arguments begins
};

/// {"name": NAME, "arguments": {, or "parameters".
CallHead read_json_head(std::string_view text);
/// Reads NAME[ARGS]{, or NAME[CALL_ID]ID[ARGS]{, which Mistral's models write from their eleventh
/// tokenizer on. The delimiters are special tokens, which may be missing in the text. Only calls of
/// known tools are found.
CallHead read_named_head(std::string_view text, const ToolSchemas& tools);

/// Reads how an item of a list of calls begins: with a JSON object, or with NAME( of a known tool.
CallHead::Is read_item_beginning(std::string_view text, const ToolSchemas& tools);

/// The contents of <function=NAME>, as Qwen 3 Coder writes them: <parameter=NAME>VALUE</parameter>,
/// once or more, and </function>.
struct ParameterCall {
  enum { kMore, kCall, kOther } is = kOther;
  std::string arguments;  // JSON
  size_t end = 0;         // where </function> begins, or </tool_call> where that is missing
};
/// schema: the schema of the arguments.
ParameterCall read_parameters(std::string_view text, const nlohmann::json& schema);

}  // namespace mulciber::apps::serve
