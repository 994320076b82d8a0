// Chat templates: convert the messages of a conversation to the text and ids that a model was
// trained on.
#pragma once

#include <cstdint>
#include <ctime>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mulciber/text_generator.h"
#include "text/jinja/template.h"
#include "text/tokenizer.h"

namespace mulciber {

class Checkpoint;

struct ChatRenderOptions {
  bool add_generation_prompt = true;  // ends with the beginning of the model's answer
  std::string tools_json;             // a list of tools; empty: none
  /// Further variables of the template as JSON texts, such as {"enable_thinking", "false"}.
  std::map<std::string, std::string> variables;
  std::optional<std::tm> now;  // the date that the template sees; default: local time
};

/// The chat templates of one model, with its special tokens.
class ChatTemplate {
 public:
  /// One template and its special tokens by name ("bos_token"); where: the file, for errors. Throws
  /// ModelError with the line where the template cannot be read.
  ChatTemplate(std::string_view source, const std::string& where,
               std::map<std::string, std::string> special_tokens = {});

  /// Loads the templates of a GGUF file (tokenizer.chat_template, and tokenizer.chat_template.NAME)
  /// or a Hugging Face folder (chat_template.jinja, and additional_chat_templates/NAME.jinja; or
  /// chat_template in tokenizer_config.json, a text or a list of named ones; or
  /// chat_template.json). No value for a base model, which has none. Throws ModelError when there
  /// is one that cannot be read, naming file and line.
  static std::optional<ChatTemplate> load(const Checkpoint& checkpoint);

  /// Chooses a template by its name (text/known_templates.h) or from a file of Jinja, with the
  /// special tokens of the model's files. Throws ModelError where there is neither such a name nor
  /// such a file.
  static ChatTemplate choose(const std::string& name_or_file, const Checkpoint& checkpoint);

  /// Renders the template "tool_use" where there are tools and it exists, otherwise "default".
  /// Throws ModelError with the line for what the template refuses (roles that do not alternate,
  /// say) or cannot compute.
  std::string render(std::span<const ChatMessage> messages,
                     const ChatRenderOptions& options = {}) const;
  /// Renders messages given as a JSON list of objects, which may have more members than role and
  /// content.
  std::string render_json(std::string_view messages, const ChatRenderOptions& options = {}) const;

  std::vector<std::string> names() const;
  const std::map<std::string, std::string>& special_tokens() const { return special_tokens_; }
  /// Texts that end an answer, in addition to the model's own end tokens.
  const std::vector<std::string>& stops() const { return stops_; }
  /// For a model that sees images: sets the text that stands for an image in prompts. Where the
  /// template supports lists of parts ({"type": "image"}, {"type": "text", "text": ...}), like the
  /// templates of transformers' processors, messages have such lists as content. Otherwise the
  /// content is a text with the placeholder on a line of its own for each image.
  void show_images_as(std::string placeholder);
  /// Whether the template writes plain text: special tokens in it do not count as such, and the
  /// tokens that begin a text are still to be added.
  bool plain() const { return plain_; }

 private:
  ChatTemplate() = default;
  /// Reads special tokens and, if asked for, templates from a model's files; there may be none.
  static ChatTemplate read(const Checkpoint& checkpoint, bool with_templates);
  void add(const std::string& name, std::string_view source, const std::string& where);
  const jinja::Template& chosen(bool with_tools) const;
  std::string render(jinja::Value messages, const ChatRenderOptions& options) const;
  std::string fill(jinja::Value messages, const ChatRenderOptions& options) const;

  std::string where_;
  std::map<std::string, jinja::Template, std::less<>> templates_;
  std::map<std::string, std::string> special_tokens_;
  std::vector<std::string> stops_;
  bool plain_ = false;
  std::string placeholder_;  // stands for an image; empty: the model sees no images
  bool takes_parts_ = false;
};

/// The ids of a rendered conversation. Special tokens in its text count as such, and none are
/// added: the template has written them. (A message that spells out a special token becomes that
/// token, like in transformers.) Throws the errors of render().
std::vector<std::int32_t> chat_ids(const Tokenizer& tokenizer, const ChatTemplate& chat_template,
                                   std::span<const ChatMessage> messages,
                                   const ChatRenderOptions& options = {});

}  // namespace mulciber
