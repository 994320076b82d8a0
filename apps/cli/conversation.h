// Code that `generate` and `chat` share: messages become a prompt, and a full context may shift.
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
  std::string chat_template;  // a name or a file; empty: the template of the model's files
  std::vector<std::string> stop;
  bool shift = false;
  std::optional<uint32_t> keep;
  GrammarOptions answer;
};
/// --system, --template, --stop, --shift, --keep, --json-schema, --regex, --grammar.
void add_conversation_options(Command& command, ConversationOptions& options);

/// The template that the options name, or that of the model's files, or else `dialogue`, which a
/// line on standard error announces. Throws ModelError.
std::shared_ptr<const ChatTemplate> chosen_template(const ConversationOptions& options,
                                                    const OpenModel& model);

/// Reads images from files, for prompts of a model. Throws ModelError where the model sees no
/// images.
PreparedImages read_images(const OpenModel& model, const std::vector<std::string>& files);

/// The messages with the system prompt before them, if there is one.
std::vector<ChatMessage> with_system(const std::string& system, std::vector<ChatMessage> messages);

/// Applies the options to the settings of a prompt. chat_template: the template that made the
/// prompt; nullptr: the prompt is a text to be continued. system: the system prompt; without
/// --keep, the text before the first question stays when the context shifts.
void apply(const ConversationOptions& options, const ChatTemplate* chat_template,
           const std::string& system, const TextGenerator& generator, GenerateOptions& settings);

/// Passes text on without leading blanks: a transcript's answer begins behind "Assistant:".
class WithoutFirstBlanks {
 public:
  std::string_view operator()(std::string_view piece);

 private:
  bool begun_ = false;
};

}  // namespace mulciber::apps
