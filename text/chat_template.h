// From the messages of a conversation to the text and the ids that a model was trained on.
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
  std::optional<std::tm> now;  // what the template sees as today; the local time where not given
};

/// The chat templates of one model, with its special tokens.
class ChatTemplate {
 public:
  /// One template and its special tokens by name ("bos_token"); where: the file, for errors. Throws
  /// ModelError with the line where the template cannot be read.
  ChatTemplate(std::string_view source, const std::string& where,
               std::map<std::string, std::string> special_tokens = {});

  /// Of a GGUF file (tokenizer.chat_template, and tokenizer.chat_template.NAME) or a Hugging Face
  /// folder (chat_template.jinja, and additional_chat_templates/NAME.jinja; or chat_template in
  /// tokenizer_config.json, a text or a list of named ones; or chat_template.json). No value where
  /// the model brings none: a base model. Throws ModelError when there is one that cannot be read,
  /// naming file and line.
  static std::optional<ChatTemplate> load(const Checkpoint& checkpoint);

  /// A template by its name (text/known_templates.h) or out of a file of Jinja, with the special
  /// tokens that the model's files have. Throws ModelError where there is neither such a name nor
  /// such a file.
  static ChatTemplate choose(const std::string& name_or_file, const Checkpoint& checkpoint);

  /// The template "tool_use" where there are tools and it exists, otherwise "default". Throws
  /// ModelError with the line: what the template refuses (roles that do not alternate, say) or
  /// cannot compute.
  std::string render(std::span<const ChatMessage> messages,
                     const ChatRenderOptions& options = {}) const;
  /// The same for messages as a JSON list of objects, which may hold more than role and content.
  std::string render_json(std::string_view messages, const ChatRenderOptions& options = {}) const;

  std::vector<std::string> names() const;
  const std::map<std::string, std::string>& special_tokens() const { return special_tokens_; }
  /// Texts that end an answer, beside the model's own tokens for that.
  const std::vector<std::string>& stops() const { return stops_; }
  /// Of a model that sees pictures: what its prompts have in a picture's place. Messages then have
  /// lists of parts for contents where the template takes such ({"type": "image"}, {"type": "text",
  /// "text": ...}), as those of transformers' processors do; otherwise texts, in which that stands,
  /// a line for each picture.
  void show_pictures_as(std::string placeholder);
  /// Its text is plain: special tokens in it do not count as such, and what begins a text is still
  /// to be added.
  bool plain() const { return plain_; }

 private:
  ChatTemplate() = default;
  /// What a model's files hold: special tokens and, where asked for, templates, perhaps none.
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
  std::string placeholder_;  // of pictures; empty: the model sees none
  bool takes_parts_ = false;
};

/// The ids of a rendered conversation. Special tokens in its text count as such, and none are
/// added: the template has written them. (A message that spells out a special token becomes that
/// token, as in transformers.) Throws ModelError as render().
std::vector<std::int32_t> chat_ids(const Tokenizer& tokenizer, const ChatTemplate& chat_template,
                                   std::span<const ChatMessage> messages,
                                   const ChatRenderOptions& options = {});

}  // namespace mulciber
