// `mulciber chat`: a conversation with a language model.
#include <fmt/format.h>

#include <memory>

#include "apps/chat/chat.h"
#include "apps/chat/console.h"
#include "apps/cli/conversation.h"
#include "apps/cli/interrupt_watch.h"
#include "apps/cli/language_model.h"
#include "apps/cli/sampling_options.h"
#include "apps/cli/speculation_options.h"

namespace mulciber::apps {
namespace {

struct ChatArguments {
  CommonOptions common;
  LanguageModelOptions model;
  SamplingOptions sampling;
  ConversationOptions conversation;
  SpeculationOptions speculation;
  std::vector<std::string> images;
  uint32_t tokens = 0;
  bool stats = false;
};

std::string in_words(const GenerateStatistics& s) {
  const uint64_t taken_in = s.prompt_tokens - s.reused_tokens;
  return fmt::format(
      "[{} tokens of the conversation held, {} taken in at {:.1f}/s, {} new at {:.1f}/s]",
      s.reused_tokens, taken_in, per_second(taken_in, s.prefill_seconds), s.new_tokens,
      decode_rate(s));
}

/// Sampling for a model whose files ask for nothing: greedy, but with a penalty against repetition,
/// into which small models fall. A transcript has no penalty: it would also make the end of an
/// answer, the next "User:", less likely.
Sampling conversation_sampling(Sampling of_model, const ChatTemplate& chat_template) {
  const Sampling off;
  if (!chat_template.plain() && of_model.temperature == off.temperature &&
      of_model.repetition_penalty == off.repetition_penalty) {
    of_model.repetition_penalty = 1.1f;
    of_model.penalty_window = off.penalty_window;
  }
  return of_model;
}

int run(const ChatArguments& options) {
  const std::optional<Grammar> grammar = chosen_grammar(options.conversation.answer);
  const std::shared_ptr<const OpenModel> model = open_model(options.model.model);
  model->require(Capability::kContinueText);
  const std::shared_ptr<Device> device = open_tuned_device(options.common, options.model, *model);
  const auto own = chosen_template(options.conversation, *model);
  const ChatTemplate& chat_template = *own;
  TextGenerator generator = load(options.model, device, model, options.common.verbose);
  std::optional<TextGenerator> draft = load_draft(options.speculation, options.model, device);
  const Sampling sampling = chosen_sampling(
      options.sampling, conversation_sampling(generator.default_sampling(), chat_template));
  tell(sampling, generator.default_sampling());
  std::optional<Chat> chat;
  PreparedImages images;
  ChatImages shows;
  if (!image_placeholder(*model).empty())
    shows = {.show =
                 [&](const std::string& file) {
                   images.push_back(prepare_image(*model, read_image(file)));
                 },
             .keep = [&](size_t count) { images.resize(count); }};
  uint64_t left_out = 0;
  const ChatGenerate generate = [&](const std::string& prompt,
                                    const std::function<void(std::string_view)>& on_text) {
    clear_interrupt();  // a SIGINT before the question does not count
    std::atomic<bool> cancel{false};
    GenerateOptions settings = {
        .sampling = sampling, .max_new_tokens = options.tokens, .cancel = &cancel};
    apply(options.speculation, draft, settings);
    settings.grammar = grammar;
    settings.images = images;
    settings.images.resize(chat->images());
    apply(options.conversation, &chat_template, chat->system_prompt(), generator, settings);
    std::string text;
    WithoutFirstBlanks without_first_blanks;
    settings.on_text = [&](std::string_view piece) {
      if (chat_template.plain()) piece = without_first_blanks(piece);
      text += piece;
      on_text(piece);
    };
    Generation result;
    {
      const InterruptWatch watch(cancel);
      result = generator.generate(prompt, settings);
    }
    clear_interrupt();
    std::string note;
    if (result.left_out > left_out)
      note =
          fmt::format("[the context of {} is full: the model no longer sees the {} oldest tokens]",
                      generator.context(), result.left_out);
    left_out = result.left_out;
    if (options.stats) note += (note.empty() ? "" : "\n") + in_words(generator.statistics());
    return ChatCompletion{text, result.end == GenerateEnd::kCancelled,
                          result.end == GenerateEnd::kContextFull, note};
  };
  Console console;
  chat.emplace(chat_template, generate, console, options.conversation.system, ChatRenderOptions{},
               shows);
  for (const std::string& file : options.images) {
    prepare_image(*model, read_image(file));  // throws where it cannot be shown
    chat->show(file);
  }
  chat->run();
  return finish(*device, options.common, kSuccess);
}

}  // namespace

void add_chat(Command& app, int& code) {
  const auto options = std::make_shared<ChatArguments>();
  Command command = app.add_subcommand("chat", "Talk with a language model");
  add_language_model_options(command, options->model);
  add_conversation_options(command, options->conversation);
  command
      .add_option("-n,--tokens", options->tokens,
                  "most tokens of an answer (default: what the context has room for)")
      .range(1, 16777216);
  command
      .add_option("--image", options->images,
                  "image that the first question is about, of a model that sees them; may be "
                  "given several times")
      .type_name("FILE");
  add_sampling_options(command, options->sampling);
  add_speculation_options(command, options->speculation);
  command.add_flag("--stats", options->stats,
                   "after each answer: tokens, and how many a second, on standard error");
  add_common_options(command, options->common);
  command.footer(
      "Ctrl-C stops an answer, /exit or Ctrl-D leaves, /help names the other commands. Answers go "
      "to standard output alone.\n\n"
      "What was computed for earlier turns is kept; only what is new is computed. A model without "
      "a chat template gets a\n"
      "transcript of User and Assistant (--template dialogue).\n\n"
      "Exit code: 0 success, 2 bad input, 4 no device or a device failure.\n"
      "Example: mulciber chat -m gemma-3-270m-it-Q8_0.gguf --system \"Answer in one sentence.\"");
  command.callback([options, &code] { code = run(*options); });
}

}  // namespace mulciber::apps
