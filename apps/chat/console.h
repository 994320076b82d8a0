// Standard input and output for a conversation.
#pragma once

#include "apps/chat/chat.h"

namespace mulciber::apps {

/// Prompts and notices go to standard error, and prompts only to a terminal: standard output has
/// the model's text alone. Ctrl-C at the prompt prints how to leave.
class Console : public ChatTerminal {
 public:
  Console();
  std::optional<std::string> read_line(std::string_view prompt) override;
  void write(std::string_view text) override;
  void notice(std::string_view line) override;

 private:
  bool terminal_;       // whether a user types
  std::string buffer_;  // input that was read, and not yet returned
  bool ended_ = false;
};

}  // namespace mulciber::apps
