// A conversation in a terminal: history, commands, answers that can be stopped.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/chat_template.h"

namespace mulciber::apps {

/// Where the person sits.
class ChatTerminal {
 public:
  virtual ~ChatTerminal() = default;
  /// The next line without its end, or nothing at the end of the input. prompt: what a person sees
  /// before it.
  virtual std::optional<std::string> read_line(std::string_view prompt) = 0;
  /// The model's words, as they come. Throws ModelError where they cannot be written.
  virtual void write(std::string_view text) = 0;
  /// Words about the conversation, a line.
  virtual void notice(std::string_view line) = 0;
};

struct ChatAnswer {
  std::string text;
  bool stopped = false;       // by Ctrl-C: the text is what came until then
  bool context_full = false;  // the text ends where the context does
  std::string note = {};      // said to the person after it
};

/// Continues a rendered conversation; on_text gets each piece of the answer. May throw ModelError,
/// as when the conversation leaves no room in the context.
using ChatGenerate = std::function<ChatAnswer(
    const std::string& prompt, const std::function<void(std::string_view)>& on_text)>;

/// Pictures of a conversation, where the model sees any.
struct ChatPictures {
  /// Adds one to those of the prompts to come. Throws ModelError where it cannot be shown.
  std::function<void(const std::string& file)> show;
  /// Forgets all but the first `count`.
  std::function<void(size_t count)> keep;
};

class Chat {
 public:
  /// The references must outlive the object. options: of every rendering.
  Chat(const ChatTemplate& chat_template, ChatGenerate generate, ChatTerminal& terminal,
       std::string system_prompt = {}, ChatRenderOptions options = {}, ChatPictures pictures = {});

  /// Shows a picture before the next question; false when it could not be (and was told).
  bool show(const std::string& file);

  /// Reads lines and answers them until /exit or the end of the input. A line that ends in a
  /// backslash goes on in the next. Errors of a single question (a template that refuses it, a
  /// context that is full) are told, the question is forgotten, and the conversation goes on.
  /// Throws LogitsError where the model cannot answer at all.
  void run();
  /// One question and its answer; false when it could not be asked (and was told).
  bool ask(const std::string& question);
  /// The messages so far, the system prompt among them.
  const std::vector<ChatMessage>& messages() const { return messages_; }
  /// Pictures of these messages: those that were shown first.
  size_t pictures() const;
  const std::string& system_prompt() const { return system_prompt_; }

 private:
  enum class Next { kContinue, kExit };
  std::optional<std::string> read_question();
  Next command(const std::string& line);
  void reset();
  /// The last question was not asked: its pictures are shown before the next one.
  void take_back();
  bool answer();

  const ChatTemplate& template_;
  ChatGenerate generate_;
  ChatTerminal& terminal_;
  std::string system_prompt_;
  ChatRenderOptions options_;
  ChatPictures pictures_;
  std::vector<ChatMessage> messages_;
  uint32_t shown_ = 0;  // pictures before the next question
};

}  // namespace mulciber::apps
