// How `mulciber serve` reads the bodies of requests.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "apps/serve/api/requests/completion_request.h"
#include "apps/serve/api/requests/responses_request.h"
#include "apps/serve/api/response_store.h"
#include "apps/serve/api/tool_calls.h"
#include "checkpoints/json.h"
#include "tests/catch.h"
#include "text/grammar/matcher.h"

using namespace mulciber;
using namespace mulciber::apps::serve;

namespace {

/// The field that a refusal names, and its status.
std::string refused(const std::string& body, bool chat = true) {
  try {
    chat ? parse_chat_request(body) : parse_completion_request(body);
  } catch (const ApiError& error) {
    CHECK(error.status() == 400);
    CHECK_FALSE(std::string(error.what()).empty());
    return error.param() + "|" + error.code();
  }
  return "taken";
}

std::string chat_with(const std::string& more) {
  return R"({"model": "m", "messages": [{"role": "user", "content": "Hello"}])" + more + "}";
}

std::set<std::string> names_of(const CompletionRequest& request) {
  std::set<std::string> names;
  for (const auto& [name, schema] : tool_schemas(request.tools_json)) names.insert(name);
  return names;
}

}  // namespace

TEST_CASE("a chat request is read") {
  const CompletionRequest request = parse_chat_request(chat_with(
      R"(, "n": 3, "max_completion_tokens": 7, "temperature": 0.5, "top_p": 0, "min_p": 0.1,
         "top_k": 5, "presence_penalty": 1, "seed": -1, "stop": "end", "logit_bias": {"7": -100, "8": 2.5},
         "logprobs": true, "top_logprobs": 2, "stream": true, "stream_options": {"include_usage": true},
         "user": "somebody", "response_format": {"type": "text"}, "tools": null)"));
  CHECK(request.chat);
  CHECK(request.model == "m");
  CHECK(request.messages == Json::parse(R"([{"role": "user", "content": "Hello"}])"));
  CHECK(request.n == 3);
  CHECK(request.max_tokens == 7);
  CHECK(request.sampling.temperature == 0.5f);
  CHECK(*request.sampling.top_p > 0);
  CHECK(request.sampling.min_p == 0.1f);
  CHECK(request.sampling.top_k == 5u);
  CHECK(request.sampling.presence_penalty == 1.0f);
  CHECK(request.sampling.penalty_window == std::numeric_limits<uint32_t>::max());
  CHECK(request.sampling.seed == std::numeric_limits<uint64_t>::max());
  CHECK(request.stop == std::vector<std::string>{"end"});
  REQUIRE(request.logit_bias.size() == 2);
  CHECK(request.logit_bias[0].second == -std::numeric_limits<float>::infinity());
  CHECK(request.logit_bias[1] == std::pair<uint32_t, float>{8, 2.5f});
  CHECK(request.log_probabilities == 2u);
  CHECK((request.stream && request.include_usage));
}

TEST_CASE("a completion request is read") {
  const CompletionRequest request = parse_completion_request(
      R"({"prompt": ["a", "b"], "max_tokens": 5, "logprobs": 3, "best_of": 1, "suffix": null})");
  REQUIRE(request.prompts.size() == 2);
  CHECK((request.prompts[0].text == "a" && request.prompts[1].text == "b"));
  CHECK((request.prompts[0].ids.empty() && request.prompts[1].ids.empty()));
  const auto ids = [](const std::string& prompt) {
    std::vector<std::vector<uint32_t>> all;
    for (const TextOrIds& one : parse_completion_request("{\"prompt\": " + prompt + "}").prompts)
      all.push_back(one.ids);
    return all;
  };
  CHECK(ids("[5, 0, 7]") == std::vector<std::vector<uint32_t>>{{5, 0, 7}});
  CHECK(ids("[[5], [6, 2147483647]]") == std::vector<std::vector<uint32_t>>{{5}, {6, 2147483647}});
  CHECK(request.log_probabilities == 3u);
  CHECK(parse_completion_request(R"({"prompt": "a"})").max_tokens == 16);
  CHECK(parse_completion_request(R"({"prompt": "a", "echo": true})").echo);
}

TEST_CASE("messages become what templates take") {
  const auto messages = [](const std::string& list) {
    return parse_chat_request("{\"messages\": " + list + "}").messages;
  };
  CHECK(messages(R"([{"role": "developer", "content": [{"type": "text", "text": "a"},
                                                       {"type": "text", "text": "b"}]}])") ==
        Json::parse(R"([{"role": "system", "content": "ab"}])"));
  // Assistant messages may come back as OpenAI's API sent them.
  CHECK(
      messages(R"([{"role": "assistant", "content": "a", "refusal": null, "annotations": []}])") ==
      Json::parse(R"([{"role": "assistant", "content": "a"}])"));
  const Json called = messages(
      R"([{"role": "user", "content": "?"},
          {"role": "assistant", "content": null, "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{\"x\": 1}"}}]},
          {"role": "tool", "tool_call_id": "1", "content": "2"}])");
  CHECK(called[1]["tool_calls"][0]["function"]["arguments"] == Json({{"x", 1}}));
  CHECK(called[2]["tool_call_id"] == "1");
}

TEST_CASE("what cannot be used is refused by name") {
  CHECK(refused("{") == "|invalid_json");
  CHECK(refused(std::string(100'000, '[')) == "|invalid_json");
  CHECK(refused(chat_with(", \"user\": \"\xff\"")) == "|invalid_json");
  CHECK(refused("[]") == "|");
  CHECK(refused("{}") == "messages|");
  CHECK(refused(R"({"messages": []})") == "messages|");
  CHECK(refused(R"({"messages": [{"role": "wizard", "content": "a"}]})") == "messages[0].role|");
  CHECK(refused(R"({"messages": [{"role": "user"}]})") == "messages[0].content|");
  CHECK(refused(R"({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]})") ==
        "messages[0].content[0].image_url|");
  CHECK(refused(R"({"messages": [{"role": "system", "content": [{"type": "image_url"}]}]})") ==
        "messages[0].content[0].type|unsupported_parameter");
  const auto with_url = [](const std::string& url) {
    return refused(R"({"messages": [{"role": "user", "content": [{"type": "text", "text": "a"},)"
                   R"({"type": "image_url", "image_url": {"url": ")" +
                   url + R"("}}]}]})");
  };
  for (const char* url : {"https://example.org/a.png", "data:image/gif;base64,AA==", "a.png"})
    CHECK(with_url(url) == "messages[0].content[1].image_url.url|invalid_image_url");
  CHECK(refused(chat_with(R"(, "wizardry": 1)")) == "wizardry|unknown_parameter");
  CHECK(refused(chat_with(R"(, "temperature": 3)")) == "temperature|");
  CHECK(refused(chat_with(R"(, "temperature": "hot")")) == "temperature|");
  CHECK(refused(chat_with(R"(, "n": 0)")) == "n|");
  CHECK(refused(chat_with(R"(, "n": 1.5)")) == "n|");
  CHECK(refused(chat_with(R"(, "max_tokens": 1, "max_completion_tokens": 1)")) == "max_tokens|");
  CHECK(refused(chat_with(R"(, "stop": [""])")) == "stop|");
  CHECK(refused(chat_with(R"(, "stop": [1])")) == "stop|");
  CHECK(refused(chat_with(R"(, "logit_bias": {"x": 1})")) == "logit_bias|");
  CHECK(refused(chat_with(R"(, "logit_bias": {"1": 101})")) == "logit_bias|");
  CHECK(refused(chat_with(R"(, "top_logprobs": 2)")) == "top_logprobs|");
  CHECK(refused(chat_with(R"(, "logprobs": true, "top_logprobs": 21)")) == "top_logprobs|");
  CHECK(refused(chat_with(R"(, "stream_options": {})")) == "stream_options|");
  CHECK(refused(chat_with(R"(, "response_format": {"type": "xml"})")) ==
        "response_format|unsupported_parameter");
  CHECK(refused(chat_with(R"(, "response_format": {"type": "json_schema"})")) ==
        "response_format.json_schema|");
  CHECK(refused(chat_with(R"(, "response_format": {"type": "json_schema",
            "json_schema": {"name": "n", "schema": {"not": {}}}})")) ==
        "response_format.json_schema.schema|unsupported_grammar");
  CHECK(refused(chat_with(R"(, "grammar": "root ::= root")")) == "grammar|unsupported_grammar");
  CHECK(refused(chat_with(R"(, "guided_regex": "a", "guided_json": {})")) == "guided_json|");
  CHECK(refused(chat_with(R"(, "functions": [])")) == "functions|unsupported_parameter");
  CHECK(refused(chat_with(R"(, "store": true)")) == "store|unsupported_parameter");
  CHECK(refused(chat_with(R"(, "tool_choice": "required")")) == "tool_choice|");
  CHECK(refused(chat_with(R"(, "tool_choice": "sometimes", "tools": [])")) ==
        "tool_choice|unsupported_parameter");
  CHECK(refused(chat_with(R"(, "tool_choice": {"type": "function", "function": {"name": "g"}},
            "tools": [{"type": "function", "function": {"name": "f"}}])")) == "tool_choice|");
  for (const char* names : {"[]", R"([{"type": "function", "function": {"name": "g"}}])"})
    CHECK(refused(chat_with(fmt::format(
              R"(, "tools": [{{"type": "function", "function": {{"name": "f"}}}}], "tool_choice":
                 {{"type": "allowed_tools", "allowed_tools": {{"mode": "auto", "tools": {}}}}})",
              names))) ==
          (names == std::string("[]") ? "tool_choice.allowed_tools.tools|" : "tool_choice|"));
  CHECK(refused(chat_with(R"(, "tools": [], "tool_choice": {"type": "allowed_tools",
            "allowed_tools": {"mode": "none", "tools": []}})")) ==
        "tool_choice.allowed_tools.mode|");
  CHECK(refused(chat_with(R"(, "verbosity": "low")")) == "verbosity|unsupported_value");
  CHECK(refused(chat_with(R"(, "tools": [{"type": "function"}])")) == "tools[0].function|");
  CHECK(refused(chat_with(R"(, "chat_template_kwargs": {"messages": []})")) ==
        "chat_template_kwargs|");
  for (const char* prompt : {"[]", "[[]]", "[1, \"a\"]", "[\"a\", 1]", "[[1], 2]", "[1, [2]]",
                             "[-1]", "[1.5]", "[2147483648]", "[null]", "{}", "7"})
    CHECK(refused(fmt::format(R"({{"prompt": {}}})", prompt), false) == "prompt|");
  CHECK(refused(R"({"prompt": "a", "n": 3, "best_of": 2})", false) == "best_of|");
  CHECK(refused(R"({"prompt": "a", "best_of": 2, "stream": true})", false) == "best_of|");
  CHECK(refused(R"({"prompt": "a", "max_tokens": 0})", false) == "max_tokens|");
  CHECK(refused(R"({"prompt": "a", "suffix": "b"})", false) == "suffix|unsupported_parameter");
}

TEST_CASE("tool_choice none takes the tools away") {
  const std::string tools =
      R"(, "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}])";
  CHECK(names_of(parse_chat_request(chat_with(tools))) == std::set<std::string>{"f"});
  CHECK(parse_chat_request(chat_with(tools + R"(, "tool_choice": "none")")).tools_json.empty());
}

TEST_CASE("requests say what answers may be") {
  const auto accepts = [](const CompletionRequest& request, std::string_view text) {
    Matcher matcher(request.grammar.value().automaton());
    Matcher::State state = matcher.start();
    for (const char c : text)
      if (state != Matcher::kDead) state = matcher.next(state, static_cast<uint8_t>(c));
    return state != Matcher::kDead && matcher.accepts(state);
  };
  CHECK_FALSE(parse_chat_request(chat_with(R"(, "response_format": {"type": "text"})")).grammar);
  CHECK(accepts(parse_chat_request(chat_with(R"(, "response_format": {"type": "json_object"})")),
                R"({"any": [1]})"));
  const CompletionRequest schema = parse_chat_request(chat_with(
      R"(, "response_format": {"type": "json_schema", "json_schema": {"name": "n", "strict": true,
         "schema": {"properties": {"z": {"const": 1}, "a": {"const": 2}}, "required": ["a"]}}})"));
  CHECK(accepts(schema, R"({"z": 1, "a": 2})"));
  CHECK_FALSE(accepts(schema, R"({"a": 2, "z": 1})"));
  const CompletionRequest digits =
      parse_completion_request(R"({"prompt": "a", "guided_regex": "[0-9]+"})");
  CHECK(accepts(digits, "12"));
  CHECK_FALSE(accepts(digits, "a"));
  CHECK(accepts(parse_completion_request(R"({"prompt": "a", "grammar": "root ::= \"x\""})"), "x"));

  const std::string tools = R"(, "tools": [
      {"type": "function", "function": {"name": "f", "parameters": {"type": "object",
        "properties": {"y": {"type": "integer"}, "b": {"type": "null"}}, "required": ["y"]}}},
      {"type": "function", "function": {"name": "g"}}])";
  const CompletionRequest required =
      parse_chat_request(chat_with(tools + R"(, "tool_choice": "required")"));
  CHECK(accepts(required, R"({"name": "f", "parameters": {"y": 1, "b": null}})"));
  CHECK(accepts(required, R"({"name": "g", "parameters": {}})"));
  CHECK_FALSE(accepts(required, R"({"name": "f", "parameters": {}})"));
  CHECK_FALSE(accepts(required, R"({"name": "h", "parameters": {}})"));
  const CompletionRequest named = parse_chat_request(
      chat_with(tools + R"(, "tool_choice": {"type": "function", "function": {"name": "g"}})"));
  CHECK_FALSE(accepts(named, R"({"name": "f", "parameters": {"y": 1}})"));
  // With allowed_tools the model is told of the allowed tools alone.
  const std::string allowed = R"(, "tool_choice": {"type": "allowed_tools", "allowed_tools": {
      "mode": "MODE", "tools": [{"type": "function", "function": {"name": "g"}}]}})";
  const auto with_mode = [&](std::string mode) {
    std::string text = allowed;
    return parse_chat_request(chat_with(tools + text.replace(text.find("MODE"), 4, mode)));
  };
  for (const char* mode : {"auto", "required"})
    CHECK(names_of(with_mode(mode)) == std::set<std::string>{"g"});
  CHECK_FALSE(with_mode("auto").grammar);
  CHECK(accepts(with_mode("required"), R"({"name": "g", "parameters": {}})"));
  CHECK_FALSE(accepts(with_mode("required"), R"({"name": "f", "parameters": {"y": 1}})"));
  const CompletionRequest flat =
      parse_responses_request(R"({"input": "a", "text": {"verbosity": "medium"},
          "tools": [{"type": "function", "name": "f"}, {"type": "function", "name": "g"}],
          "tool_choice": {"type": "allowed_tools", "mode": "required",
                          "tools": [{"type": "function", "name": "f"}]}})")
          .completion;
  CHECK(names_of(flat) == std::set<std::string>{"f"});
  CHECK(accepts(flat, R"({"name": "f", "parameters": {}})"));
  CHECK_FALSE(accepts(flat, R"({"name": "g", "parameters": {}})"));
  parse_chat_request(chat_with(R"(, "verbosity": "medium")"));
  // An answer in this form is read as a call.
  ToolCallReader reader({{"f", nullptr}});
  reader.push(R"({"name": "f", "parameters": {"y": 1}})");
  reader.finish();
  const std::vector<CallPiece> calls = reader.take();
  REQUIRE(calls.size() == 1);
  CHECK(calls[0].arguments == R"({"y":1})");
}

TEST_CASE("a request for a response is read") {
  const ResponsesRequest request =
      parse_responses_request(R"({"model": "m", "instructions": "Be brief.",
      "input": [{"role": "user", "content": [{"type": "input_text", "text": "a"}]},
                {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{\"x\": 1}"},
                {"type": "function_call", "call_id": "2", "name": "f", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "1", "output": "b"}],
      "max_output_tokens": 7, "store": false, "truncation": "auto", "metadata": {"k": "v"},
      "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}}],
      "text": {"format": {"type": "json_schema", "name": "n", "schema": {"const": 1}}}})");
  CHECK(request.completion.model == "m");
  CHECK(request.completion.max_tokens == 7);
  CHECK((!request.keep && request.may_cut));
  CHECK(request.repeated["metadata"] == Json({{"k", "v"}}));
  REQUIRE(request.messages.size() == 3);
  CHECK(request.messages[1]["tool_calls"].size() == 2);
  CHECK(request.messages[1]["tool_calls"][0]["function"]["arguments"] == Json({{"x", 1}}));
  CHECK(request.messages[2]["role"] == "tool");
  CHECK(Json::parse(request.completion.tools_json)[0]["function"]["name"] == "f");
  CHECK(request.completion.grammar);
  ResponsesRequest cut = request;
  cut.set_messages(request.messages, 2);
  CHECK(cut.completion.messages == Json::parse(R"([{"role": "system", "content": "Be brief."},
                        {"role": "tool", "tool_call_id": "1", "content": "b"}])"));

  const auto refused = [](const std::string& more) -> std::string {
    try {
      parse_responses_request("{" + more + "}");
    } catch (const ApiError& error) {
      CHECK(error.status() == 400);
      return error.param() + "|" + error.code();
    }
    return "taken";
  };
  CHECK(refused("") == "input|");
  CHECK(refused(R"("input": [])") == "input|");
  CHECK(refused(R"("input": "a", "wizardry": 1)") == "wizardry|unknown_parameter");
  CHECK(refused(R"("input": [{"type": "item_reference", "id": "x"}])") ==
        "input[0].type|unsupported_parameter");
  CHECK(refused(R"("input": [{"role": "user", "content": [{"type": "input_image"}]}])") ==
        "input[0].content[0].image_url|");
  CHECK(refused(R"("input": [{"type": "function_call", "call_id": "1", "name": "f",
                              "arguments": "{"}])") == "input[0].arguments|");
  CHECK(refused(R"("input": "a", "background": true)") == "background|unsupported_parameter");
  CHECK(refused(R"("input": "a", "truncation": "some")") == "truncation|");
  CHECK(refused(R"("input": "a", "metadata": {"k": 1})") == "metadata|");
  CHECK(refused(R"("input": "a", "include": ["everything"])") == "include|unsupported_parameter");
  CHECK(refused(R"("input": "a", "text": {"format": {"type": "xml"}})") ==
        "text.format|unsupported_parameter");
  CHECK(refused(R"("input": "a", "text": {"format": {"type": "json_schema"}})") ==
        "text.format.schema|");
}

TEST_CASE("responses are kept within bounds") {
  ResponseStore store(2, 100);
  store.put("a", {"A", "[]"});
  store.put("b", {"B", "[]"});
  CHECK(store.find("a")->object == "A");
  // b is the entry that has gone longest without a request.
  store.put("c", {"C", "[]"});
  CHECK_FALSE(store.find("b"));
  CHECK((store.find("a") && store.find("c")));
  store.put("d", {std::string(80, 'x'), "[]"});
  CHECK((store.find("c") && store.find("d") && store.size() == 2));
  store.put("e", {std::string(200, 'x'), "[]"});  // more than the store holds: the others stay
  CHECK((store.find("c") && store.find("d") && store.size() == 2));
  CHECK_FALSE(store.find("e"));
  store.put("f", {"F", "[]"});
  CHECK(store.erase("f"));
  CHECK_FALSE(store.erase("f"));
}
