// Standard input and output as a conversation uses them.
#pragma once

#include "apps/chat/chat.h"

namespace mulciber::apps {

/// Prompts and notices go to standard error, and prompts only to a terminal: standard output holds
/// the model's words alone. Ctrl-C at the prompt says how to leave.
class Console : public ChatTerminal {
 public:
  Console();
  std::optional<std::string> read_line(std::string_view prompt) override;
  void write(std::string_view text) override;
  void notice(std::string_view line) override;

 private:
  bool terminal_;       // whether somebody types
  std::string buffer_;  // read, and not yet given out
  bool ended_ = false;
};

}  // namespace mulciber::apps
