// Tool calls in answers, which `mulciber serve` takes out of the text.
#include "apps/serve/api/tool_calls.h"

#include <nlohmann/json.hpp>

#include "apps/serve/api/parameter_value.h"
#include "checkpoints/json.h"
#include "tests/catch.h"

using namespace mulciber;
using namespace mulciber::apps::serve;

namespace {

/// The text that is shown and the calls that are found, whatever pieces the answer comes in.
std::string read_calls(const std::string& answer, size_t piece, ToolSchemas tools) {
  ToolCallReader reader(std::move(tools));
  std::string shown;
  std::vector<CallPiece> calls;
  for (size_t at = 0; at < answer.size(); at += piece) {
    shown += reader.push(answer.substr(at, piece));
    add_pieces(calls, reader.take());
  }
  shown += reader.finish();
  add_pieces(calls, reader.take());
  for (const CallPiece& call : calls) {
    CHECK(call.id.starts_with("call_"));
    shown += "|" + call.name + call.arguments;
  }
  CHECK(reader.called() == !calls.empty());
  return shown;
}

}  // namespace

TEST_CASE("calls of tools are taken out of answers, however they are cut") {
  const Json schema = Json::parse(R"({"properties": {"text": {"type": "string"},
      "kind": {"enum": ["1", "2"]}, "both": {"type": ["string", "null"]}}})");
  const ToolSchemas tools = {{"f", schema}, {"g", nullptr}};
  for (const size_t piece : {1, 3, 1000}) {
    const auto read = [&](const std::string& answer) { return read_calls(answer, piece, tools); };
    CHECK(read("No call, a < b.") == "No call, a < b.");
    CHECK(read("Let me see. <tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": "
               "1}}\n</tool_call>") == "Let me see. |f{\"x\":1}");
    CHECK(read("<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>\n"
               "<tool_call>{\"name\": \"g\", \"arguments\": {\"y\": \"</b>\"}}</tool_call>") ==
          "|f{}|g{\"y\":\"</b>\"}");
    // The closing delimiter may be the token that ended the answer, and so be absent.
    CHECK(read("<tool_call>{\"name\": \"f\", \"arguments\": {}}") == "|f{}");
    CHECK(read("[TOOL_CALLS] [{\"name\": \"f\", \"arguments\": {\"x\": 1}}, {\"name\": \"g\"}]") ==
          "|f{\"x\":1}|g{}");
    CHECK(read("[{\"name\": \"f\", \"arguments\": {\"x\": 1}}]") == "|f{\"x\":1}");
    CHECK(read("{\"name\": \"f\", \"parameters\": {\"x\": 1}}") == "|f{\"x\":1}");
    CHECK(read("<|python_tag|>{\"name\": \"g\", \"parameters\": {}}") == "|g{}");
    CHECK(read("{\"name\": \"f\", \"parameters\": {}}; {\"name\": \"g\", \"parameters\": {}}") ==
          "|f{}|g{}");
    CHECK(read("<function=f>{\"x\": \"a b\"}</function>") == "|f{\"x\":\"a b\"}");
    CHECK(read("Now: <function=g></function>\n<function=f>\n{}") == "Now: |g{}|f{}");
    CHECK(read("<function=h>{}</function>") == "<function=h>{}</function>");
    CHECK(read("<function=f>nothing</function>") == "<function=f>nothing</function>");
    // Mistral's newer form, whose delimiters are special tokens.
    CHECK(read("[TOOL_CALLS]f[ARGS]{\"x\": 1}") == "|f{\"x\":1}");
    CHECK(read("[TOOL_CALLS]f[CALL_ID]a1B[ARGS]{\"x\": 1}[TOOL_CALLS]g[ARGS]{}") ==
          "|f{\"x\":1}|g{}");
    CHECK(read("f{\"x\": 1}g{}") == "|f{\"x\":1}|g{}");
    CHECK(read("[THINK]hm[/THINK]ok[TOOL_CALLS]f[ARGS]{}") == "[THINK]hm[/THINK]ok|f{}");
    CHECK(read("Sure. [TOOL_CALLS] [{\"name\": \"f\", \"arguments\": {}}]") == "Sure. |f{}");
    CHECK(read("[TOOL_CALLS] f [ARGS] {\"x\": 1} [TOOL_CALLS]g[ARGS]{}") == "|f{\"x\":1}|g{}");
    for (const char* text : {"f", "f is a letter", "f[1]", "[TOOL_CALLS]h[ARGS]{}", "f {}", "g[AR",
                             "a [TOOL_CALLS]h[ARGS]{} b", "[TOOL_CALLS]f {}", "a [TOOL_CALLS]"})
      CHECK(read(text) == text);
    // Qwen 3 Coder's form, whose values are texts or JSON by the function's schema.
    CHECK(read("I see.\n<tool_call>\n<function=f>\n<parameter=text>\n12\n</parameter>\n"
               "<parameter=x>\n12\n</parameter>\n</function>\n</tool_call>") ==
          "I see.\n|f{\"text\":\"12\",\"x\":12}");
    CHECK(read("<function=f><parameter=kind>1</parameter><parameter=both>null</parameter>"
               "<parameter=y>[1, {\"a\": true}]</parameter><parameter=z>a b</parameter>"
               "<parameter=w>True</parameter></function>") ==
          "|f{\"both\":null,\"kind\":\"1\",\"w\":true,\"y\":[1,{\"a\":true}],\"z\":\"a b\"}");
    CHECK(read("<tool_call><function=f><parameter=text>a</parameter> b</parameter></function>"
               "</tool_call><tool_call><function=g></function></tool_call>") ==
          "|f{\"text\":\"a</parameter> b\"}|g{}");
    // Models leave out some of the tags.
    CHECK(read("<function=f>\n<parameter=x>\n1\n</parameter>\n</function>\n</tool_call>\nSo") ==
          "\nSo|f{\"x\":1}");
    CHECK(read("<tool_call><function=f></function><function=g></function></tool_call>.") ==
          ".|f{}|g{}");
    CHECK(read("<tool_call>\n<function=f>\n<parameter=x>\n1\n</parameter>\n</tool_call>") ==
          "|f{\"x\":1}");
    CHECK(read("<function=g></function>, and") == ", and|g{}");
    for (const char* text : {"<function=f><parameter=x>1</parameter> and",
                             "<tool_call><function=h></function></tool_call>"})
      CHECK(read(text) == text);
    // The name need not come first, and members may follow the arguments.
    CHECK(read("<tool_call>{\"arguments\": {\"x\": [1, {}]}, \"name\": \"f\"}</tool_call> then") ==
          " then|f{\"x\":[1,{}]}");
    CHECK(read("[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {\"x\": \"\\\"}\"}, \"id\": \"a]\"}, "
               "{\"name\": \"g\", \"arguments\": {}}]") == "|f{\"x\":\"\\\"}\"}|g{}");
    CHECK(read("[f(x=1, y='a\\'b', z=[True, None, {\"k\": -2.5}]), g()]") ==
          "|f{\"x\":1,\"y\":\"a'b\",\"z\":[true,null,{\"k\":-2.5}]}|g{}");
    CHECK(read("[f(x=\"\\u00e9\\ud83d\\ude00\\x41\\r\\\"\")]") == "|f{\"x\":\"é😀A\\r\\\"\"}");
    CHECK(read("[f(x='\xff')]") == "|f{\"x\":\"\xef\xbf\xbd\"}");
    CHECK(read("[TOOL_CALLS][{\"name\": \"g\", \"parameters\": null}]") == "|g{}");
    for (const char* text :
         {"[f(1)]", "[f(x='\\ud83d')]", "[f(x='\\u00')]", "[1] is a note", "[f is a letter",
          "[f(x=y)]", "[f(x=1)", "[h(x=1)]", "[f(x='a)]", "[f(x=1) g()]", "[f(x=1)] and"})
      CHECK(read(text) == text);
    // Text that is not a call of a known tool stays text.
    CHECK(read("{\"name\": \"h\", \"parameters\": {}}") == "{\"name\": \"h\", \"parameters\": {}}");
    CHECK(read("{not JSON") == "{not JSON");
    CHECK(read("<tool_call>nothing</tool_call>") == "<tool_call>nothing</tool_call>");
    CHECK(read("  blanks stay") == "  blanks stay");
    CHECK(read("a <tool") == "a <tool");
  }
  CHECK(read_calls("<tool_call>{\"name\": \"f\"}</tool_call>", 4, {}) ==
        "<tool_call>{\"name\": \"f\"}</tool_call>");
}

TEST_CASE("a call is told of while it is written") {
  for (const char* begin : {"<tool_call>{\"name\": \"f\", \"arguments\": {", "<function=f>{",
                            "{\"name\": \"f\", \"parameters\": {"}) {
    ToolCallReader reader({{"f", nullptr}});
    CHECK(reader.push(begin).empty());
    const std::vector<CallPiece> named = reader.take();
    REQUIRE(named.size() == 1);
    CHECK(named[0].name == "f");
    CHECK(named[0].arguments == "{");
    CHECK(reader.push("\"x\": ").empty());
    const std::vector<CallPiece> more = reader.take();
    REQUIRE(more.size() == 1);
    CHECK((more[0].id.empty() && more[0].name.empty() && more[0].index == 0));
    CHECK(more[0].arguments == "\"x\":");
    // An answer that ends here is cut off.
    CHECK(reader.finish().empty());
    CHECK_FALSE(reader.called());
  }
}

TEST_CASE("where one call alone is wanted, nothing behind it counts") {
  for (const char* answer : {"f{\"x\": 1}g{\"y\": ", "<function=f>{\"x\": 1}</function> and"}) {
    ToolCallReader reader({{"f", nullptr}, {"g", nullptr}}, true);
    std::string shown;
    size_t needed = 0;
    for (const char* c = answer; *c; ++c) {
      if (!reader.enough()) ++needed;
      shown += reader.push({*c});
    }
    CHECK(needed == std::string_view(answer).find('}') + 1);
    CHECK(shown + reader.finish() == "");
    CHECK(reader.called());
    std::vector<CallPiece> calls;
    add_pieces(calls, reader.take());
    REQUIRE(calls.size() == 1);
    CHECK(calls[0].name + calls[0].arguments == "f{\"x\":1}");
  }
}

TEST_CASE("parameters are what the schema of a function takes") {
  const Json schema = Json::parse(R"({"$defs": {"size": {"enum": ["1", "2", 3]},
      "again": {"$ref": "#/$defs/again"}, "text": {"type": "string"}}, "properties": {
      "text": {"type": "string"}, "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]},
      "size": {"$ref": "#/$defs/size"}, "number": {"type": "integer"}, "any": {},
      "either": {"oneOf": [{"$ref": "#/$defs/text"}, {"type": "array"}]},
      "again": {"$ref": "#/$defs/again"}, "astray": {"$ref": "#/none"},
      "all": {"allOf": [{"type": ["string", "number"]}, {"type": "string"}]},
      "only": {"const": "5"}, "flag": {"type": "boolean"}}})");
  const auto value = [&](const char* name, const char* text) {
    return parameter_value(text, schema, name);
  };
  CHECK(value("text", "12") == "12");
  CHECK(value("text", "\n\"a\"\n") == "\"a\"");
  CHECK(value("maybe", "123") == "123");
  CHECK(value("maybe", "True") == "True");
  CHECK(value("maybe", "null") == nullptr);
  CHECK(value("maybe", "None") == nullptr);
  CHECK(value("size", "1") == "1");
  CHECK(value("size", "3") == 3);
  CHECK(value("number", "007") == "007");
  CHECK(value("number", " 7\n") == 7);
  CHECK(value("any", "7") == 7);
  CHECK(value("any", "\"7\"") == "7");
  CHECK(value("either", "7") == "7");
  CHECK(value("either", "[7]") == Json::array({7}));
  CHECK(value("again", "7") == 7);
  CHECK(value("astray", "7") == 7);
  CHECK(value("all", "7") == "7");
  CHECK(value("only", "5") == "5");
  CHECK(value("flag", "True") == true);
  CHECK(value("unknown", "[1, a]") == "[1, a]");
}
