#include "text/chat_template.h"

#include <array>
#include <nlohmann/json.hpp>

#include "checkpoints/checkpoint.h"
#include "mulciber/error.h"
#include "text/jinja/text.h"
#include "text/known_templates.h"

namespace mulciber {
namespace {

namespace fs = std::filesystem;
using jinja::Value;

constexpr const char* kDefault = "default";
constexpr const char* kToolUse = "tool_use";
// Bound for a file behind an application's function; the longest known template has 30 kB.
constexpr std::uint64_t kLongestText = 16 << 20;

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

std::string read_text(const ModelFile& file) {
  std::vector<std::byte> scratch;
  return std::string(file.whole(scratch, kLongestText));
}

/// A special token is written as its text or as an object that describes it.
void read_special_tokens(const Json& config, std::map<std::string, std::string>& tokens) {
  constexpr std::array<const char*, 7> kNames = {"bos_token", "eos_token", "unk_token", "sep_token",
                                                 "pad_token", "cls_token", "mask_token"};
  for (const char* name : kNames) {
    const auto found = config.find(name);
    if (found == config.end()) continue;
    if (found->is_string())
      tokens[name] = found->get<std::string>();
    else if (found->is_object() && found->contains("content") && (*found)["content"].is_string())
      tokens[name] = (*found)["content"].get<std::string>();
  }
}

std::map<std::string, std::string> gguf_special_tokens(const GgufFile& file) {
  std::map<std::string, std::string> tokens;
  const GgufValue* pieces = file.find_value("tokenizer.ggml.tokens");
  if (!pieces || !pieces->is_array || pieces->type != GgufType::kString) return tokens;
  const std::vector<std::string_view> texts = pieces->texts();
  constexpr std::array<std::pair<const char*, const char*>, 4> kKeys = {
      {{"bos_token", "tokenizer.ggml.bos_token_id"},
       {"eos_token", "tokenizer.ggml.eos_token_id"},
       {"unk_token", "tokenizer.ggml.unknown_token_id"},
       {"pad_token", "tokenizer.ggml.padding_token_id"}}};
  for (const auto& [name, key] : kKeys) {
    const GgufValue* id = file.find_value(key);
    if (!id || !id->is_integer() || id->is_array || id->integer() < 0) continue;
    const auto index = static_cast<std::size_t>(id->integer());
    if (index < texts.size()) tokens[name] = texts[index];
  }
  return tokens;
}

Value image_part() {
  jinja::Dict part;
  part.set(Value::string("type"), Value::string("image"));
  return Value::dict(std::move(part));
}

Value text_part(const Value& text) {
  jinja::Dict part;
  part.set(Value::string("type"), Value::string("text"));
  part.set(Value::string("text"), text);
  return Value::dict(std::move(part));
}

/// Wraps a text in a list of one part.
Value in_parts(const Value& content) {
  return content.is_string() ? Value::list({text_part(content)}) : content;
}

/// Joins a list of parts to a text, with a line for each image.
Value as_text(const Value& content, const std::string& placeholder) {
  if (!content.is(jinja::Kind::kList)) return content;
  std::string text;
  for (const Value& part : content.items()) {
    const Value* said = part.is(jinja::Kind::kDict) ? part.dict().find("text") : nullptr;
    text += said && said->is_string() ? said->text() : placeholder + "\n";
  }
  return Value::string(std::move(text));
}

Value message_list(std::span<const ChatMessage> messages) {
  std::vector<Value> list;
  std::size_t bytes = 0;
  for (const ChatMessage& message : messages) {
    bytes += message.role.size() + message.content.size();
    if (bytes > std::size_t{32} << 20)
      throw ModelError("messages", "hold more than 32 MiB of text",
                       "no known model reads that much");
    jinja::Dict dict;
    dict.set(Value::string("role"), Value::string(jinja::valid_utf8(message.role)));
    const Value content = Value::string(jinja::valid_utf8(message.content));
    std::vector<Value> parts(message.images, image_part());
    if (!parts.empty()) parts.push_back(text_part(content));
    dict.set(Value::string("content"), parts.empty() ? content : Value::list(std::move(parts)));
    list.push_back(Value::dict(std::move(dict)));
  }
  return Value::list(std::move(list));
}

}  // namespace

ChatTemplate::ChatTemplate(std::string_view source, const std::string& where,
                           std::map<std::string, std::string> special_tokens)
    : where_(where), special_tokens_(std::move(special_tokens)) {
  add(kDefault, source, where);
}

void ChatTemplate::add(const std::string& name, std::string_view source, const std::string& where) {
  const std::string label = name == kDefault ? where + ": chat template"
                                             : where + ": chat template '" + printable(name) + "'";
  templates_.insert_or_assign(name, jinja::Template(source, label));
}

ChatTemplate ChatTemplate::read(const Checkpoint& checkpoint, bool with_templates) {
  ChatTemplate found;
  found.where_ = checkpoint.path().string();
  if (const GgufFile* file = checkpoint.gguf()) {
    constexpr std::string_view kKey = "tokenizer.chat_template";
    for (const auto& [key, value] : file->metadata()) {
      if (!with_templates || !key.starts_with(kKey) || !value.is_text()) continue;
      if (key.size() == kKey.size())
        found.add(kDefault, value.text(), found.where_);
      else if (key[kKey.size()] == '.')
        found.add(key.substr(kKey.size() + 1), value.text(), found.where_);
    }
    found.special_tokens_ = gguf_special_tokens(*file);
  } else if (checkpoint.is_folder()) {
    const fs::path& model = checkpoint.folder();
    const fs::path config_path = model / "tokenizer_config.json",
                   map_path = model / "special_tokens_map.json";
    const Json* const config = checkpoint.tokenizer_config();
    const ModelFiles& files = checkpoint.files();
    if (files.exists(map_path))
      if (const Json map = read_json(files.open(map_path)); map.is_object())
        read_special_tokens(map, found.special_tokens_);
    if (config) read_special_tokens(*config, found.special_tokens_);
    if (!with_templates) return found;

    // Later templates replace earlier ones of the same name.
    const auto add_from = [&](const Json& json, const fs::path& path) {
      const auto entry = json.find("chat_template");
      if (entry == json.end() || entry->is_null()) return;
      const auto refuse = [&] {
        throw ModelError(path.string(),
                         "'chat_template' is neither a text nor a list of named texts",
                         "download it again");
      };
      if (entry->is_string())
        return found.add(kDefault, entry->get_ref<const std::string&>(), path.string());
      if (!entry->is_array()) refuse();
      for (const Json& one : *entry) {
        if (!one.is_object() || !one.contains("name") || !one["name"].is_string() ||
            !one.contains("template") || !one["template"].is_string())
          refuse();
        found.add(one["name"].get<std::string>(), one["template"].get_ref<const std::string&>(),
                  path.string());
      }
    };
    if (const fs::path path = model / "chat_template.json"; files.exists(path))
      if (const Json json = read_json(files.open(path)); json.is_object()) add_from(json, path);
    if (config) add_from(*config, config_path);
    if (const fs::path path = model / "chat_template.jinja"; files.exists(path))
      found.add(kDefault, read_text(files.open(path)), path.string());
    for (const fs::path& path : files.list(model / "additional_chat_templates"))
      if (path.extension() == ".jinja")
        found.add(path.stem().string(), read_text(files.open(path)), path.string());
  }
  return found;
}

std::optional<ChatTemplate> ChatTemplate::load(const Checkpoint& checkpoint) {
  ChatTemplate found = read(checkpoint, true);
  if (found.templates_.empty()) return std::nullopt;
  return found;
}

ChatTemplate ChatTemplate::choose(const std::string& name_or_file, const Checkpoint& checkpoint) {
  const KnownTemplate* known = find_known_template(name_or_file);
  if (!known && !is_there(name_or_file))
    throw ModelError("chat template '" + printable(name_or_file) + "'",
                     "is neither a known name nor a file",
                     "known names: " + known_template_names());
  std::map<std::string, std::string> tokens = read(checkpoint, false).special_tokens_;
  // A missing token becomes an empty text, so that templates can print it.
  for (const char* name : {"bos_token", "eos_token"}) tokens.emplace(name, "");
  if (!known)
    return ChatTemplate(read_text(fs::path(name_or_file)), name_or_file, std::move(tokens));
  ChatTemplate chosen(known->source, name_or_file, std::move(tokens));
  chosen.stops_.assign(known->stops.begin(), known->stops.end());
  chosen.plain_ = known->plain;
  return chosen;
}

std::vector<std::string> ChatTemplate::names() const {
  std::vector<std::string> names;
  for (const auto& [name, source] : templates_) names.push_back(name);
  return names;
}

const jinja::Template& ChatTemplate::chosen(bool with_tools) const {
  if (const auto found = templates_.find(kToolUse); with_tools && found != templates_.end())
    return found->second;
  if (const auto found = templates_.find(kDefault); found != templates_.end()) return found->second;
  throw ModelError(where_, "has chat templates, but none named 'default'",
                   "use a model whose files say how it chats");
}

std::string ChatTemplate::render(std::span<const ChatMessage> messages,
                                 const ChatRenderOptions& options) const {
  return render(message_list(messages), options);
}

std::string ChatTemplate::render_json(std::string_view messages,
                                      const ChatRenderOptions& options) const {
  Value list = jinja::from_json(messages, "messages");
  if (!list.is(jinja::Kind::kList))
    throw ModelError("messages", "are not a JSON list",
                     "give a list of objects with role and content");
  return render(std::move(list), options);
}

void ChatTemplate::show_images_as(std::string placeholder) {
  placeholder_ = std::move(placeholder);
  // A template that takes lists of parts prints the text of a part; others throw, or print the list
  // itself.
  constexpr const char* kText = "what is said";
  jinja::Dict message;
  message.set(Value::string("role"), Value::string("user"));
  message.set(Value::string("content"), in_parts(Value::string(kText)));
  try {
    const std::string text = fill(Value::list({Value::dict(std::move(message))}), {});
    takes_parts_ = text.find(kText) != text.npos && text.find("'text'") == text.npos;
  } catch (const ModelError&) {
    takes_parts_ = false;
  }
}

std::string ChatTemplate::render(Value messages, const ChatRenderOptions& options) const {
  if (placeholder_.empty()) return fill(std::move(messages), options);
  std::vector<Value> shown;
  for (const Value& message : messages.items()) {
    const Value* content =
        message.is(jinja::Kind::kDict) ? message.dict().find("content") : nullptr;
    jinja::Dict copy;
    if (content) {
      copy = message.dict();
      copy.set(Value::string("content"),
               takes_parts_ ? in_parts(*content) : as_text(*content, placeholder_));
    }
    shown.push_back(content ? Value::dict(std::move(copy)) : message);
  }
  return fill(Value::list(std::move(shown)), options);
}

std::string ChatTemplate::fill(Value messages, const ChatRenderOptions& options) const {
  jinja::Template::Variables variables;
  for (const auto& [name, text] : special_tokens_)
    variables.emplace_back(name, Value::string(jinja::valid_utf8(text)));
  for (const auto& [name, json] : options.variables) {
    std::erase_if(variables,
                  [&name = name](const auto& variable) { return variable.first == name; });
    variables.emplace_back(name, jinja::from_json(json, "the template's variable '" + name + "'"));
  }
  variables.emplace_back("messages", std::move(messages));
  variables.emplace_back("tools", options.tools_json.empty()
                                      ? Value::none()
                                      : jinja::from_json(options.tools_json, "tools"));
  variables.emplace_back("documents", Value::none());
  variables.emplace_back("add_generation_prompt", Value::boolean(options.add_generation_prompt));
  return chosen(!options.tools_json.empty()).render(std::move(variables), options.now);
}

std::vector<std::int32_t> chat_ids(const Tokenizer& tokenizer, const ChatTemplate& chat_template,
                                   std::span<const ChatMessage> messages,
                                   const ChatRenderOptions& options) {
  return tokenizer.encode(chat_template.render(messages, options),
                          {.add_special = false, .parse_special = true});
}

}  // namespace mulciber
