#include "apps/cli/conversation.h"

#include <fmt/format.h>

#include <algorithm>

#include "apps/cli/standard_error.h"
#include "text/known_templates.h"

namespace mulciber::apps {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

/// The text before the first question of every conversation with this system prompt.
std::string beginning(const ChatTemplate& chat_template, const std::string& system) {
  const auto rendered = [&](const char* question) {
    return chat_template.render(with_system(system, {{"user", question}}));
  };
  const std::string one = rendered("a"), other = rendered("b");
  return one.substr(0, static_cast<size_t>(std::ranges::mismatch(one, other).in1 - one.begin()));
}

}  // namespace

void add_conversation_options(Command& command, ConversationOptions& options) {
  command.add_option("--system", options.system, "system prompt: how the model should answer");
  command
      .add_option("--template", options.chat_template,
                  "how messages become a prompt: " + known_template_names() +
                      ", or a file of Jinja (default: the model's own)")
      .type_name("NAME|FILE");
  command.add_option("--stop", options.stop,
                     "text that ends the answer; may be given several times");
  const Option shift = command.add_flag(
      "--shift", options.shift, "when the context is full, go on without the oldest tokens");
  command
      .add_option("--keep", options.keep,
                  "tokens at the beginning that --shift never leaves out (default: what stands "
                  "before the first "
                  "question, at most half of the context)")
      .needs(shift);
  add_grammar_options(command, options.answer);
}

PreparedImages read_images(const OpenModel& model, const std::vector<std::string>& files) {
  PreparedImages images;
  for (const std::string& file : files) images.push_back(prepare_image(model, read_image(file)));
  return images;
}

std::shared_ptr<const ChatTemplate> chosen_template(const ConversationOptions& options,
                                                    const OpenModel& model) {
  if (!options.chat_template.empty()) return model.choose_template(options.chat_template);
  if (model.chat_template()) return model.chat_template();
  tell(
      "The model's files have no chat template, it was not made for conversations: "
      "--template {} is taken.\n",
      kDialogueTemplate);
  return model.choose_template(std::string(kDialogueTemplate));
}

std::vector<ChatMessage> with_system(const std::string& system, std::vector<ChatMessage> messages) {
  if (!system.empty()) messages.insert(messages.begin(), {"system", system});
  return messages;
}

void apply(const ConversationOptions& options, const ChatTemplate* chat_template,
           const std::string& system, const TextGenerator& generator, GenerateOptions& settings) {
  settings.stop = options.stop;
  if (chat_template) {
    // A template writes special tokens itself, unless it is one of plain text.
    settings.add_special = chat_template->plain();
    // Images are tokens that stand in the text.
    settings.parse_special = !chat_template->plain() || !settings.images.empty();
    settings.stop.insert(settings.stop.end(), chat_template->stops().begin(),
                         chat_template->stops().end());
  }
  settings.shift = options.shift;
  if (options.keep) {
    settings.keep = *options.keep;
  } else if (options.shift && chat_template) {
    // At most half is kept, because the conversation needs room.
    const size_t tokens = generator.count_tokens(beginning(*chat_template, system), settings);
    settings.keep = static_cast<uint32_t>(std::min<size_t>(tokens, generator.context() / 2));
  }
}

std::string_view WithoutFirstBlanks::operator()(std::string_view piece) {
  if (!begun_) piece.remove_prefix(std::min(piece.find_first_not_of(kBlanks), piece.size()));
  begun_ = begun_ || !piece.empty();
  return piece;
}

}  // namespace mulciber::apps
