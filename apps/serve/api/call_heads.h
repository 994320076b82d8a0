// How calls of tools begin, in the forms that models write.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace mulciber::apps::serve {

/// Functions that a model was told of: their names, and the JSON schemas of their arguments.
using ToolSchemas = std::map<std::string, nlohmann::json>;

inline constexpr std::string_view kTaggedEnd = "</tool_call>", kFunctionEnd = "</function>",
                                  kParameter = "<parameter=";
inline constexpr std::string_view kCallBlanks = " \t\r\n";
size_t skip_blanks(std::string_view text, size_t at);
std::string_view trimmed(std::string_view text);

/// The beginning of a call, as far as it is there.
struct CallHead {
  enum Is { kMore, kCall, kOther } is = kOther;
  std::string name;
  size_t arguments = 0;  // where the object of its arguments begins
};

/// {"name": NAME, "arguments": {, or "parameters".
CallHead read_json_head(std::string_view text);
/// NAME[ARGS]{, or NAME[CALL_ID]ID[ARGS]{: Mistral's models from their eleventh tokenizer on. The
/// marks are special tokens, which may be missing in the text. Of known tools alone.
CallHead read_named_head(std::string_view text, const ToolSchemas& tools);

/// How an item of a list of calls begins: as JSON, or as NAME( of a known tool.
CallHead::Is read_item_beginning(std::string_view text, const ToolSchemas& tools);

/// What stands in <function=NAME>, as Qwen 3 Coder writes it: <parameter=NAME>VALUE</parameter>,
/// once or more, and </function>.
struct ParameterCall {
  enum { kMore, kCall, kOther } is = kOther;
  std::string arguments;  // JSON
  size_t end = 0;         // where </function> begins, or </tool_call> where that is missing
};
/// schema: of the arguments.
ParameterCall read_parameters(std::string_view text, const nlohmann::json& schema);

}  // namespace mulciber::apps::serve
