// `mulciber chat`: a conversation with a language model.
#include <fmt/format.h>

#include <memory>

#include "apps/chat.h"
#include "apps/console.h"
#include "apps/interrupt_watch.h"
#include "apps/language_model.h"
#include "apps/sampling_options.h"

namespace mulciber::apps {
namespace {

struct Options {
  CommonOptions common;
  LanguageModelOptions model;
  SamplingOptions sampling;
  std::string system;
  uint32_t tokens = 0;
  bool stats = false;
};

// For models without a template: base models go on with a transcript, and are stopped where the person's turn begins.
constexpr const char* kTranscript =
    "{% for m in messages %}{% if m.role == 'system' %}{{ m.content }}\n\n{% elif m.role == 'user' %}User: {{ m.content }}\n"
    "{% else %}Assistant:{{ m.content }}\n{% endif %}{% endfor %}Assistant:";
constexpr const char* kPersonsTurn = "\nUser:";

std::string in_words(const GenerateStatistics& s) {
  const uint64_t taken_in = s.prompt_tokens - s.reused_tokens;
  return fmt::format("[{} tokens of the conversation held, {} taken in at {:.1f}/s, {} new at {:.1f}/s]", s.reused_tokens, taken_in,
                     per_second(taken_in, s.prefill_seconds), s.new_tokens, per_second(s.decode_steps, s.decode_seconds));
}

int run(const Options& options) {
  const std::optional<ChatTemplate> of_model = ChatTemplate::load(options.model.model);
  const ChatTemplate transcript(kTranscript, "transcript");
  const std::shared_ptr<Device> device = open_device(options.common);
  TextGenerator generator = load(options.model, device, options.common.verbose);
  if (!of_model)
    fmt::print(stderr, "This model has no chat template: it was not made for conversations, and gets them as a transcript.\n");
  const Sampling sampling = chosen_sampling(options.sampling, generator.default_sampling());
  tell(sampling, generator.default_sampling());
  const ChatGenerate generate = [&](const std::string& prompt, const std::function<void(std::string_view)>& on_text) {
    clear_interrupt();  // of the time before the question
    std::atomic<bool> cancel{false};
    // A template writes the special tokens itself.
    GenerateOptions settings = {.sampling = sampling, .max_new_tokens = options.tokens, .add_special = !of_model, .parse_special = of_model.has_value(), .cancel = &cancel};
    if (!of_model) settings.stop = {kPersonsTurn};
    settings.on_text = on_text;
    Generation result;
    {
      const InterruptWatch watch(cancel);
      result = generator.generate(prompt, settings);
    }
    clear_interrupt();
    return ChatAnswer{result.text, result.end == GenerateEnd::kCancelled, result.end == GenerateEnd::kContextFull,
                      options.stats ? in_words(generator.statistics()) : ""};
  };
  Console console;
  Chat chat(of_model ? *of_model : transcript, generate, console, options.system);
  chat.run();
  return finish(*device, options.common, kSuccess);
}

}  // namespace

void add_chat(CLI::App& app, int& code) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("chat", "Talk with a language model");
  add_language_model_options(*command, options->model);
  command->add_option("--system", options->system, "system prompt: how the model should answer");
  command->add_option("-n,--tokens", options->tokens, "most tokens of an answer (default: what the context has room for)")->check(CLI::Range(1, 16777216));
  add_sampling_options(*command, options->sampling);
  command->add_flag("--stats", options->stats, "after each answer: tokens, and how many a second, on standard error");
  add_common_options(*command, options->common);
  command->footer(
      "Ctrl-C stops an answer, /exit or Ctrl-D leaves, /help names the other commands. Answers go to standard output alone.\n\n"
      "What was computed for earlier turns is kept; only what is new is computed. A model without a chat template continues a\n"
      "transcript of User and Assistant.\n\n"
      "Exit code: 0 success, 2 bad input, 4 no device or a device failure.\n"
      "Example: mulciber chat -m gemma-3-270m-it-Q8_0.gguf --system \"Answer in one sentence.\"");
  command->callback([options, &code] { code = run(*options); });
}

}  // namespace mulciber::apps
