// A conversation in a terminal: history, commands, answers that can be stopped.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/chat_template.h"

namespace mulciber::apps {

/// The user's terminal.
class ChatTerminal {
 public:
  virtual ~ChatTerminal() = default;
  /// The next line without its end, or no value at the end of the input. prompt: shown before it.
  virtual std::optional<std::string> read_line(std::string_view prompt) = 0;
  /// Writes the model's text as it comes. Throws ModelError where it cannot be written.
  virtual void write(std::string_view text) = 0;
  /// Prints a line about the conversation.
  virtual void notice(std::string_view line) = 0;
};

struct ChatCompletion {
  std::string text;
  bool stopped = false;       // by Ctrl-C; the text is what came until then
  bool context_full = false;  // the text ends where the context does
  std::string note = {};      // printed after the answer
};

/// Continues a rendered conversation; on_text gets each piece of the answer. May throw ModelError,
/// for example when the conversation leaves no room in the context.
using ChatGenerate = std::function<ChatCompletion(
    const std::string& prompt, const std::function<void(std::string_view)>& on_text)>;

/// The images of a conversation, where the model sees any.
struct ChatImages {
  /// Adds an image to those of later prompts. Throws ModelError where it cannot be shown.
  std::function<void(const std::string& file)> show;
  /// Drops all images but the first `count`.
  std::function<void(size_t count)> keep;
};

class Chat {
 public:
  /// The references must outlive the object. options: for every rendering.
  Chat(const ChatTemplate& chat_template, ChatGenerate generate, ChatTerminal& terminal,
       std::string system_prompt = {}, ChatRenderOptions options = {}, ChatImages images = {});

  /// Shows an image before the next question; false, after a notice, when it could not be shown.
  bool show(const std::string& file);

  /// Reads lines and answers them until /exit or the end of the input. A line that ends in a
  /// backslash goes on in the next. Errors of a single question (a template that refuses it, a
  /// context that is full) are printed, the question is dropped, and the conversation goes on.
  /// Throws LogitsError where the model cannot answer at all.
  void run();
  /// Asks one question; false, after a notice, when it could not be asked.
  bool ask(const std::string& question);
  /// The messages so far, with the system prompt.
  const std::vector<ChatMessage>& messages() const { return messages_; }
  /// How many images these messages have: those shown first.
  size_t images() const;
  const std::string& system_prompt() const { return system_prompt_; }

 private:
  enum class Next { kContinue, kExit };
  std::optional<std::string> read_question();
  Next command(const std::string& line);
  void reset();
  /// Takes back a question that was not asked: its images are shown before the next one.
  void take_back();
  bool answer();

  const ChatTemplate& template_;
  ChatGenerate generate_;
  ChatTerminal& terminal_;
  std::string system_prompt_;
  ChatRenderOptions options_;
  ChatImages images_;
  std::vector<ChatMessage> messages_;
  uint32_t shown_ = 0;  // images before the next question
};

}  // namespace mulciber::apps
