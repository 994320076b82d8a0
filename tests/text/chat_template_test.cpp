// Chat templates compared byte by byte with what jinja2 renders in the environment of transformers,
// and hostile ones.
#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>
#include <optional>

#include "checkpoints/checkpoint.h"
#include "tests/catch.h"
#include "tests/model_error.h"
#include "text/chat_template.h"
#include "text/known_templates.h"
#include "text/tokenizers/json.h"

using namespace mulciber;
using jinja::Value;
using tests::model_error;

namespace {

Checkpoint files(const std::filesystem::path& model) {
  return Checkpoint(model, Checkpoint::Contents::kText);
}

/// The time of the generator's clock: Friday, 26 July 2024, 09:05:03.
std::tm recorded_moment() {
  std::tm moment{};
  moment.tm_year = 2024 - 1900;
  moment.tm_mon = 6;
  moment.tm_mday = 26;
  moment.tm_hour = 9;
  moment.tm_min = 5;
  moment.tm_sec = 3;
  moment.tm_wday = 5;
  moment.tm_yday = 207;
  return moment;
}

std::string rendered(const std::string& source, const std::string& variables_json,
                     const jinja::Limits& limits = {}) {
  jinja::Template::Variables variables = {{"tools", Value::none()}, {"documents", Value::none()}};
  const Value given = jinja::from_json(variables_json, "variables");
  for (const auto& [key, value] : given.dict().items) {
    std::erase_if(variables,
                  [&, &name = key](const auto& variable) { return variable.first == name.text(); });
    variables.emplace_back(key.text(), value);
  }
  return jinja::Template(source, "test").render(std::move(variables), recorded_moment(), limits);
}

void refused(const std::string& source, const std::string& words) {
  INFO(source.substr(0, 200));
  const auto message = model_error([&] { rendered(source, "{}"); });
  REQUIRE(message);
  CHECK_THAT(*message, Catch::Matchers::ContainsSubstring(words));
}

std::string many(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

}  // namespace

TEST_CASE("Chat templates render as transformers renders them") {
  const auto document =
      nlohmann::json::parse(tests::read_file(tests::data_dir() / "chat_templates.json"));
  size_t texts = 0, errors = 0;
  for (const auto& entry : document["cases"]) {
    const std::string source = document["templates"][entry["template"].get<size_t>()];
    const std::string variables = document["variables"][entry["variables"].get<size_t>()];
    INFO(entry["name"].get<std::string>() << "\n" << source.substr(0, 600));
    std::string text;
    const auto message = model_error([&] { text = rendered(source, variables); });
    if (entry.contains("text")) {
      CHECK(message.value_or("") == "");
      CHECK(text == entry["text"].get<std::string>());
      ++texts;
    } else {
      REQUIRE(message);
      CHECK_THAT(*message, Catch::Matchers::ContainsSubstring("test, line "));
      CHECK_THAT(*message, Catch::Matchers::ContainsSubstring(entry["error"].get<std::string>()));
      ++errors;
    }
  }
  CHECK(texts >= 180);
  CHECK(errors >= 40);
}

TEST_CASE("Errors of a chat template name the line") {
  refused("a\nb\n{{ 1 + 'a' }}\nc", "test, line 3: ");
  refused("a\n{% if x %}\n\n{{ ) }}{% endif %}", "test, line 4: ");
  refused("{# a\nb #}\n{{ raise_exception('Roles must alternate') }}",
          "line 3: the template refuses this conversation: Roles must alternate");
  refused("{% macro m() %}\n{{ none + 1 }}\n{% endmacro %}\n{{ m() }}", "line 2: ");
  refused("{{ 1 if x is nosuchtest }}", "there is no test named 'nosuchtest'");
}

TEST_CASE("A hostile chat template ends in an error, soon and within bounds") {
  // Limits on time.
  refused("{% for a in range(99999) %}{% for b in range(99) %}{{ a * b }}{% endfor %}{% endfor %}",
          "steps");
  refused("{% macro m() %}{{ m() }}{{ m() }}{% endmacro %}{{ m() }}", "too deep");
  refused(
      "{% set ns = namespace(l=range(9999)|list) %}{% for a in ns.l %}{% for b in ns.l %}{{ b in "
      "ns.l }}{% endfor %}{% endfor %}",
      "the template ");
  refused(
      "{% set s = 'a' * 9999999 %}{% for i in range(99999) %}{% if s == s ~ 'b' %}{% endif %}{% "
      "endfor %}",
      "the template ");
  // Limits on memory.
  refused("{{ 'a' * 999999999999 }}", "bytes");
  refused("{{ [1] * 99999999999 }}", "bytes");
  refused(
      "{% set ns = namespace(s='aaaaaaaa') %}{% for i in range(60) %}{% set ns.s = ns.s ~ ns.s "
      "%}{% endfor %}",
      "bytes");
  refused(
      "{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = ns.l + ns.l %}{% "
      "endfor %}",
      "bytes");
  refused("{{ ('a' * 9999999).replace('', 'b' * 9999999) }}", "the template ");
  refused("{{ '%999999999s' % 1 }}", "1000 characters");
  refused("{{ 'a'.center(999999999999) }}", "padded");
  refused("{{ [[[[1]]]] | tojson(indent=999999999999, separators=('a' * 99999999, '')) }}",
          "line 1");
  refused("{{ range(99999) | join('x' * 99999) }}", "bytes");
  refused("{{ [1] | batch(999999999999, 1) | list }}", "bytes");
  refused("{{ strftime_now('%999999999d') }}", "date");
  // Limits on depth, in the text and in the values.
  refused("{{ " + many("(", 5000) + "1" + many(")", 5000) + " }}", "nest");
  refused("{{ " + many("-", 9000) + "1 }}", "nest");
  refused("{{ " + many("not ", 9000) + "1 }}", "nest");
  refused("{{ 1" + many(" + 1", 9000) + " }}", "nest");
  refused("{{ a" + many(".b", 9000) + " }}", "nest");
  refused("{{ a" + many("|upper", 9000) + " }}", "nest");
  refused(many("{% if 1 %}", 9000), "nest");
  refused("{% set " + many("(", 9000) + "a" + many(")", 9000) + " = 1 %}", "nest");
  refused(
      "{% set ns = namespace(l=[]) %}{% for i in range(999) %}{% set ns.l = [ns.l] %}{% endfor %}",
      "nest");
  refused(
      "{% set ns = namespace(l=[]) %}{% for i in range(99) %}{% set ns.l = [ns.l, ns.l] %}{% "
      "endfor %}{{ ns.l }}",
      "too many values");
  // A namespace cannot keep what lives shorter than the template, and nothing may contain itself.
  refused("{% set ns = namespace() %}{% set ns.a = ns %}", "namespace cannot hold");
  refused("{% set ns = namespace() %}{% set ns.a = [ns] %}", "namespace cannot hold");
  refused("{% set ns = namespace() %}{% for i in [1] %}{% set ns.a = loop %}{% endfor %}",
          "namespace cannot hold");
  refused(
      "{% set ns = namespace() %}{% for i in [1] %}{% macro m() %}{% endmacro %}{% set ns.a = [m] "
      "%}{% endfor %}",
      "namespace cannot hold");
  // Limits on numbers.
  refused("{{ 9223372036854775807 + 1 }}", "too large");
  refused("{{ 99999999999999999999 }}", "too large");
  refused("{{ (-9223372036854775807 - 1) // -1 }}", "too large");
  refused("{{ 3 ** 9999999999 }}", "too large");
  CHECK(rendered("{{ (-9223372036854775807 - 1) % -1 }} {{ "
                 "'abc'[-9223372036854775807:9223372036854775807:9223372036854775807] }}",
                 "{}") == "0 a");
  refused("\xff{{ 1 }}", "UTF-8");
  refused(std::string(2 << 20, 'a'), "bytes");
}

TEST_CASE("Chat templates are found where models keep them") {
  const tests::TemporaryFolder folder;
  const auto& path = folder.path();
  CHECK_FALSE(ChatTemplate::load(files(path)));
  const std::vector<ChatMessage> messages = {{"user", "Hi"}};
  const auto text = [&] {
    return ChatTemplate::load(files(path))->render(messages, {.add_generation_prompt = false});
  };

  tests::write_file(path / "tokenizer_config.json",
                    R"({"bos_token": {"content": "<s>"}, "eos_token": "</s>", "pad_token": null,
                        "chat_template": "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}{{ pad_token }}"})");
  CHECK(text() == "<s>Hi</s>");
  tests::write_file(path / "chat_template.jinja", "file: {{ messages[0].role }}\n");
  CHECK(text() == "file: user");
  tests::write_file(path / "additional_chat_templates" / "tool_use.jinja",
                    "tools: {{ tools | tojson }}");
  CHECK(
      ChatTemplate::load(files(path))->render(messages, {.tools_json = R"([{"b": 1, "a": 2}])"}) ==
      R"(tools: [{"b": 1, "a": 2}])");
  CHECK(ChatTemplate::load(files(path))->names() ==
        std::vector<std::string>{"default", "tool_use"});
  CHECK(text() == "file: user");

  std::filesystem::remove(path / "chat_template.jinja");
  std::filesystem::remove_all(path / "additional_chat_templates");
  tests::write_file(
      path / "tokenizer_config.json",
      R"({"chat_template": [{"name": "default", "template": "d"}, {"name": "tool_use", "template": "t"}]})");
  CHECK(text() == "d");
  CHECK(ChatTemplate::load(files(path))->render(messages, {.tools_json = "[]"}) == "t");
  CHECK(ChatTemplate::load(files(path))->render_json(R"([{"role": "user", "content": [1]}])") ==
        "d");

  const auto refusal = [&](const std::string& config) {
    tests::write_file(path / "tokenizer_config.json", config);
    return model_error([&] { ChatTemplate::load(files(path))->render(messages); })
        .value_or("no error");
  };
  using Catch::Matchers::ContainsSubstring;
  CHECK_THAT(refusal(R"({"chat_template": 5})"),
             ContainsSubstring("tokenizer_config.json: 'chat_template' is neither"));
  CHECK_THAT(refusal(R"({"chat_template": [{"name": "default"}]})"),
             ContainsSubstring("is neither"));
  CHECK_THAT(refusal(R"({"chat_template": "{% if %}"})"),
             ContainsSubstring("tokenizer_config.json: chat template, line 1"));
  CHECK_THAT(refusal(R"({"chat_template": [{"name": "rag", "template": "x"}]})"),
             ContainsSubstring("none named 'default'"));
  CHECK_THAT(refusal("[]"), ContainsSubstring("is not a JSON object"));
}

TEST_CASE("Templates are known by name, for files that have none") {
  const tests::TemporaryFolder folder, empty;
  const auto& path = folder.path();
  tests::write_file(path / "tokenizer_config.json",
                    R"({"bos_token": "<s>", "eos_token": "</s>", "chat_template": "{% if %}"})");
  const std::vector<ChatMessage> messages = {
      {"system", "Be brief."}, {"user", " Hi "}, {"assistant", "Hello."}, {"user", "Why?"}};
  const auto rendered = [&](const std::string& name) {
    return ChatTemplate::choose(name, files(path)).render(messages);
  };
  CHECK(rendered("chatml") ==
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n Hi "
        "<|im_end|>\n<|im_start|>assistant\nHello.<|im_end|>\n"
        "<|im_start|>user\nWhy?<|im_end|>\n<|im_start|>assistant\n");
  CHECK(rendered("gemma") ==
        "<s><start_of_turn>user\nBe "
        "brief.\n\nHi<end_of_turn>\n<start_of_turn>model\nHello.<end_of_turn>\n"
        "<start_of_turn>user\nWhy?<end_of_turn>\n<start_of_turn>model\n");
  CHECK(rendered("llama3") ==
        "<s><|start_header_id|>system<|end_header_id|>\n\nBe "
        "brief.<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\nHello.<|eot_id|><|start_header_id|>user<|"
        "end_header_id|>\n\nWhy?<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\n");
  CHECK(rendered("mistral") == "<s>[INST] Be brief.\n\n Hi  [/INST]Hello.</s>[INST] Why? [/INST]");
  const std::string dialogue = rendered("dialogue");
  CHECK(dialogue.starts_with("Be brief.\n\nUser: "));
  CHECK(dialogue.ends_with("\nUser: Hi\nAssistant: Hello.\nUser: Why?\nAssistant:"));
  for (const KnownTemplate& known : known_templates()) {
    const ChatTemplate chosen = ChatTemplate::choose(std::string(known.name), files(path));
    CHECK(chosen.plain() == (known.name == kDialogueTemplate));
    CHECK_FALSE(chosen.stops().empty());
    // The conversation has no system prompt, and the model names no special tokens.
    CHECK(ChatTemplate::choose(std::string(known.name), files(empty.path()))
              .render(std::span(messages).subspan(1, 1))
              .find("Hi") != std::string::npos);
  }

  tests::write_file(path / "mine.jinja", "{{ bos_token }}mine: {{ messages[1].content }}");
  CHECK(rendered((path / "mine.jinja").string()) == "<s>mine:  Hi ");
  tests::write_file(path / "broken.jinja", "{% for %}");
  using Catch::Matchers::ContainsSubstring;
  CHECK_THAT(model_error([&] { rendered((path / "broken.jinja").string()); }).value_or(""),
             ContainsSubstring("line 1"));
  for (const std::string name : {"", "nothing", "Chatml"})
    CHECK_THAT(model_error([&] { rendered(name); }).value_or(""),
               ContainsSubstring("chatml, dialogue, gemma, llama3, mistral"));
}

TEST_CASE("Variables and messages reach the template") {
  const ChatTemplate chat(
      "{{ messages[0].content }}|{{ enable_thinking is false }}|{{ bos_token }}|{{ "
      "add_generation_prompt }}",
      "test", {{"bos_token", "<s>"}});
  const std::vector<ChatMessage> messages = {{"user", "a\xff\xf0z"}};
  CHECK(chat.render(messages, {.variables = {{"enable_thinking", "false"}}}) ==
        "a\uFFFD\uFFFDz|True|<s>|True");
  CHECK(chat.render(messages,
                    {.add_generation_prompt = false, .variables = {{"bos_token", "\"B\""}}}) ==
        "a\uFFFD\uFFFDz|False|B|False");
  CHECK(model_error([&] { chat.render(messages, {.tools_json = "{"}); }));
  CHECK(model_error([&] { chat.render_json("{}"); }));
  CHECK(model_error([&] { chat.render_json(many("[", 99) + many("]", 99)); }));
}

TEST_CASE("Special tokens of a rendered conversation become their ids") {
  const Json json =
      Json::parse(R"({"version": "1.0", "truncation": null, "padding": null, "normalizer": null,
    "added_tokens": [{"id": 0, "content": "<|im_start|>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true},
                     {"id": 1, "content": "<|im_end|>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}],
    "pre_tokenizer": {"type": "Whitespace"}, "post_processor": null, "decoder": null,
    "model": {"type": "WordLevel", "unk_token": "?", "vocab": {"<|im_start|>": 0, "<|im_end|>": 1, "user": 2, "hello": 3, "?": 4, "assistant": 5}}})");
  const JsonTokenizer tokenizer(json, "test");
  const ChatTemplate chat(
      "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}{% "
      "if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
      "test");
  const std::vector<ChatMessage> messages = {{"user", "hello hello"}, {"user", "what"}};
  CHECK(chat_ids(tokenizer, chat, messages) ==
        std::vector<int32_t>{0, 2, 3, 3, 1, 0, 2, 4, 1, 0, 5});
  CHECK(chat_ids(tokenizer, chat, messages, {.add_generation_prompt = false}) ==
        std::vector<int32_t>{0, 2, 3, 3, 1, 0, 2, 4, 1});
}
