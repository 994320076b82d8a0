// What `generate` and `chat` have in common: messages become a prompt, and a context that is full
// may shift.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/cli/grammar_options.h"
#include "apps/cli/options.h"
#include "models/families/open_model.h"
#include "mulciber/text_generator.h"

namespace mulciber::apps {

struct ConversationOptions {
  std::string system;
  std::string chat_template;  // a name or a file; empty: that of the model's files
  std::vector<std::string> stop;
  bool shift = false;
  std::optional<uint32_t> keep;
  GrammarOptions answer;
};
/// --system, --template, --stop, --shift, --keep, --json-schema, --regex, --grammar.
void add_conversation_options(Command& command, ConversationOptions& options);

/// The template that was asked for, or that of the model's files, or `dialogue` where they have
/// none, which is said in a line on standard error. Throws ModelError.
std::shared_ptr<const ChatTemplate> chosen_template(const ConversationOptions& options,
                                                    const OpenModel& model);

/// Pictures out of files, for prompts of a model. Throws ModelError where it sees none.
PreparedPictures read_pictures(const OpenModel& model, const std::vector<std::string>& files);

/// Messages that begin with the system prompt, where there is one.
std::vector<ChatMessage> with_system(const std::string& system, std::vector<ChatMessage> messages);

/// What the options say of a prompt. chat_template: that made it; nullptr: it is a text to be
/// continued. system: of the conversation; without --keep, what stands before its first question
/// stays when the context shifts.
void apply(const ConversationOptions& options, const ChatTemplate* chat_template,
           const std::string& system, const TextGenerator& generator, GenerateOptions& settings);

/// Hands text on without the blanks that it begins with: a transcript's answer begins behind
/// "Assistant:".
class WithoutFirstBlanks {
 public:
  std::string_view operator()(std::string_view piece);

 private:
  bool begun_ = false;
};

}  // namespace mulciber::apps
