// `mulciber generate`: continues a prompt, and prints the text piece by piece.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "apps/attention/options.h"
#include "apps/attention/text_maps.h"
#include "apps/cli/conversation.h"
#include "apps/cli/interrupt_watch.h"
#include "apps/cli/language_model.h"
#include "apps/cli/peaks.h"
#include "apps/cli/progress.h"
#include "apps/cli/sampling_options.h"
#include "apps/cli/speculation_options.h"
#include "apps/cli/standard_error.h"
#include "checkpoints/json.h"
#include "mulciber/text_generator.h"
#include "mulciber/translator.h"

namespace mulciber::apps {
namespace {

struct GenerateArguments {
  CommonOptions common;
  LanguageModelOptions model;
  SamplingOptions sampling;
  MapOptions maps;
  ConversationOptions conversation;
  SpeculationOptions speculation;
  std::string prompt, prompt_file, cache;
  std::vector<std::string> images;
  uint32_t tokens = 0, steps = 0;
  bool stats = false, ignore_end = false, raw = false;
};

/// The share of its floor that decoding reaches. The floor: the bytes that a step must move, at the
/// device's measured rate.
double floor_share(const GenerateStatistics& s, double bytes_per_second) {
  if (s.decode_steps == 0 || s.decode_seconds <= 0 || bytes_per_second <= 0) return 0;
  return static_cast<double>(s.step_bytes) * s.decode_steps / bytes_per_second / s.decode_seconds;
}

uint64_t peak_cpu_bytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

nlohmann::json statistics_json(const GenerateStatistics& s, Device& device, uint64_t cpu_bytes) {
  return {{"device", describe(device).name},
          {"load_seconds", s.load_seconds},
          {"build_seconds", s.build_seconds},
          {"first_token_seconds", s.first_token_seconds},
          {"prompt_tokens", s.prompt_tokens},
          {"reused_tokens", s.reused_tokens},
          {"new_tokens", s.new_tokens},
          {"steps", s.decode_steps},
          {"images", s.images},
          {"image_seconds", s.image_seconds},
          {"pictures", s.images},                // deprecated name
          {"picture_seconds", s.image_seconds},  // deprecated name
          {"prefill_seconds", s.prefill_seconds},
          {"decode_seconds", s.decode_seconds},
          {"attention_seconds", s.attention_seconds},
          {"prefill_tps", per_second(s.prompt_tokens - s.reused_tokens, s.prefill_seconds)},
          {"decode_tps", decode_rate(s)},
          {"draft_tokens", s.draft_tokens},
          {"proposed_tokens", s.draft_tokens},  // its name in 0.1
          {"accepted_tokens", s.accepted_tokens},
          {"floor_share", floor_share(s, measure_bandwidth(device))},
          {"weight_bytes", s.weight_bytes},
          {"predicted_device_bytes", s.predicted_device_bytes},
          {"peak_device_bytes", s.peak_device_bytes},
          {"peak_cpu_bytes", cpu_bytes},
          {"peak_host_bytes", cpu_bytes}};  // deprecated name
}

nlohmann::json sampling_json(const Sampling& s) {
  return {{"temperature", s.temperature},
          {"top_k", s.top_k},
          {"top_p", s.top_p},
          {"min_p", s.min_p},
          {"typical_p", s.typical_p},
          {"repetition_penalty", s.repetition_penalty},
          {"presence_penalty", s.presence_penalty},
          {"frequency_penalty", s.frequency_penalty},
          {"penalty_window", s.penalty_window},
          {"seed", s.seed}};
}

void print_statistics(const GenerateStatistics& s, Device& device, uint64_t cpu_bytes) {
  const DeviceDescription d = describe(device);
  tell("device            {}{}\n", d.name, d.software ? " (software)" : "");
  tell("time to load      {:.3f} s\n", s.load_seconds);
  tell("time to 1st token {:.3f} s ({:.3f} s of it making programs)\n", s.first_token_seconds,
       s.build_seconds);
  tell("prefill           {:.1f} tokens/s ({} tokens, {} of them held already, {:.3f} s)\n",
       per_second(s.prompt_tokens - s.reused_tokens, s.prefill_seconds), s.prompt_tokens,
       s.reused_tokens, s.prefill_seconds);
  if (s.images > 0)
    tell("images            {:.3f} s for {}, or parts of such\n", s.image_seconds, s.images);
  fmt::print(
      stderr,
      "decode            {:.1f} tokens/s ({} steps, {:.3f} s), {:.0f} % of the bandwidth floor\n",
      decode_rate(s), s.decode_steps, s.decode_seconds,
      100 * floor_share(s, measure_bandwidth(device)));
  tell_speculation(s);
  tell("device memory     {:.1f} MiB at most ({:.1f} MiB predicted, {:.1f} MiB weights)\n",
       mebibytes(s.peak_device_bytes), mebibytes(s.predicted_device_bytes),
       mebibytes(s.weight_bytes));
  tell("CPU memory        {:.1f} MiB at most{}\n", mebibytes(cpu_bytes),
       d.software ? ", what the software driver allocates included" : "");
}

/// The template that makes a question of the prompt. A base model continues the text, unless a
/// template or a system prompt is asked for.
std::shared_ptr<const ChatTemplate> question_template(const GenerateArguments& options,
                                                      const OpenModel& model) {
  if (options.raw) return nullptr;
  if (options.conversation.chat_template.empty() && options.conversation.system.empty())
    return model.chat_template();
  return chosen_template(options.conversation, model);
}

/// The attention of prompt and answer for the page. `prompt` is the text that was given; the tokens
/// are all that the model has read.
SentenceMaps to_maps(Generation& generation, const std::string& prompt, const std::string& model,
                     const Device& device) {
  SentenceMaps maps =
      maps_of_text(std::move(*generation.attention), generation.prompt_ids.size(), true);
  maps.source_text = prompt;
  maps.target_text = generation.text;
  maps.model = name_of_model(model);
  maps.device = describe(device).name;
  return maps;
}

/// Throws where an option is given that only language models have.
void require_rewriting(const GenerateArguments& options) {
  const SamplingOptions& s = options.sampling;
  const ConversationOptions& c = options.conversation;
  const bool samples = s.temperature || s.top_p || s.min_p || s.typical_p || s.repetition_penalty ||
                       s.presence_penalty || s.frequency_penalty || s.top_k || s.penalty_window;
  const std::pair<bool, const char*> given[] = {
      {samples, "options of sampling"},
      {!c.system.empty() || !c.chat_template.empty() || !c.stop.empty() || c.shift || c.keep,
       "options of conversations"},
      {c.answer.any(), "grammars"},
      {!options.cache.empty(), "--prompt-cache"},
      {!options.images.empty(), "images"},
      {!options.speculation.draft.empty() || options.speculation.prompt_lookup > 0,
       "speculative decoding"},
      {options.ignore_end, "--ignore-end"},
      {options.stats, "--stats"},
      {options.steps > 0, "--steps-per-submission"},
      {!options.maps.file.empty() || !options.maps.mask_heads.empty(), "attention maps and masks"},
      {options.model.half_activations || options.model.fast_activations,
       "other activations than in 32 bits"}};
  for (const auto& [is_given, what] : given) {
    if (is_given)
      throw ModelError(what, "are for decoder-only language models, which this one is not",
                       "leave them out, or see what `mulciber translate` has");
  }
}

/// The answer of an encoder-decoder: a text made of the whole prompt by the model's own search.
int rewrite(const GenerateArguments& options, std::shared_ptr<const OpenModel> model,
            const std::string& prompt) {
  require_rewriting(options);
  const std::shared_ptr<Device> device = open_device(options.common);
  Translator translator(device, std::move(model),
                        {.half_weights = options.model.half_weights,
                         .adapters = adapter_files(options.model.adapters)});
  std::atomic<bool> cancel{false};
  TranslateOptions settings;
  if (options.tokens > 0) settings.max_new_tokens = options.tokens;
  settings.cancel = &cancel;
  Translation result;
  {
    const InterruptWatch watch(cancel);
    result = translator.translate(prompt, settings);
  }
  if (options.common.json) {
    const nlohmann::json object = {{"prompt", prompt},
                                   {"text", result.text},
                                   {"prompt_ids", result.source_ids},
                                   {"ids", result.ids},
                                   {"score", result.score}};
    write_piece(object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  } else {
    write_piece(result.text + "\n");
  }
  return finish(*device, options.common, result.complete ? kSuccess : kInterrupted);
}

int run(const GenerateArguments& options) {
  const std::optional<Grammar> grammar = chosen_grammar(options.conversation.answer);
  const std::string prompt =
      options.prompt_file.empty() ? options.prompt : read_text(options.prompt_file);
  const std::shared_ptr<const OpenModel> model = open_model(options.model.model);
  if (model->family().capabilities.has(Capability::kRewriteText))
    return rewrite(options, model, prompt);
  const PreparedImages images = read_images(*model, options.images);
  const std::shared_ptr<Device> device = open_tuned_device(options.common, options.model, *model);
  const std::shared_ptr<const ChatTemplate> asked = question_template(options, *model);
  TextGenerator generator =
      load(options.model, device, model, options.stats || options.common.verbose);
  if (!options.cache.empty() && std::filesystem::exists(options.cache))
    generator.load_cache(options.cache);

  const Sampling sampling = chosen_sampling(options.sampling, generator.default_sampling());
  tell(sampling, generator.default_sampling());
  std::atomic<bool> cancel{false};
  GenerateOptions settings = {.sampling = sampling,
                              .max_new_tokens = options.tokens,
                              .ignore_end = options.ignore_end,
                              .grammar = grammar,
                              .attention = !options.maps.file.empty(),
                              .steps_per_submission = options.steps,
                              .cancel = &cancel};
  settings.images = images;
  std::optional<TextGenerator> draft = load_draft(options.speculation, options.model, device);
  apply(options.speculation, draft, settings);
  const std::string& system = options.conversation.system;
  apply(options.conversation, asked.get(), system, generator, settings);
  std::optional<Progress> progress;
  settings.on_prompt = [&](size_t done, size_t total) {
    if (!progress) progress.emplace("prompt", total);
    progress->update(done);
    if (done == total) progress->finish();
  };
  WithoutFirstBlanks without_first_blanks;
  std::string text;
  settings.on_text = [&](std::string_view piece) {
    if (asked && asked->plain()) piece = without_first_blanks(piece);
    text += piece;
    if (!options.common.json) write_piece(piece);
  };
  Generation result;
  {
    const InterruptWatch watch(cancel);
    ChatMessage question = {"user", prompt};
    question.images = static_cast<uint32_t>(images.size());
    result = generator.generate(asked ? asked->render(with_system(system, {question})) : prompt,
                                settings);
  }
  if (!options.cache.empty()) generator.save_cache(options.cache);
  const GenerateStatistics& statistics = generator.statistics();
  // The peak is taken before statistics, which measure the device's bandwidth with memory of their
  // own.
  const uint64_t cpu_bytes = peak_cpu_bytes();
  if (options.common.json) {
    nlohmann::json object = {{"prompt", prompt},
                             {"text", text},
                             {"prompt_ids", result.prompt_ids},
                             {"ids", result.ids},
                             {"end", name_of(result.end)},
                             {"sampling", sampling_json(sampling)},
                             {"chat", asked != nullptr},
                             {"left_out", result.left_out}};
    if (options.stats) object["statistics"] = statistics_json(statistics, *device, cpu_bytes);
    write_piece(json_line(object) + "\n");
  } else {
    write_piece("\n");
    if (result.end == GenerateEnd::kContextFull && options.tokens == 0)
      tell("mulciber: the context of {} tokens is full; --shift goes on without the oldest\n",
           generator.context());
    if (result.left_out > 0)
      tell("mulciber: the context of {} tokens was full: the {} oldest were left out\n",
           generator.context(), result.left_out);
    if (options.stats) print_statistics(statistics, *device, cpu_bytes);
  }
  if (result.attention)
    write_maps(options.maps, {to_maps(result, prompt, options.model.model, *device)});
  return finish(*device, options.common,
                result.end == GenerateEnd::kCancelled ? kInterrupted : kSuccess);
}

}  // namespace

void add_generate(Command& app, int& code) {
  const auto options = std::make_shared<GenerateArguments>();
  Command command =
      app.add_subcommand("generate", "Ask a language model, or have it continue a text");
  add_language_model_options(command, options->model);
  const Option prompt =
      command.add_option("-p,--prompt", options->prompt, "the question, or the text to continue");
  const Option file =
      command
          .add_option("--prompt-file", options->prompt_file, "file with it (- is standard input)")
          .type_name("FILE");
  prompt.excludes(file);
  command
      .add_option("-n,--tokens", options->tokens,
                  "most tokens of the answer (default: what the context has room for)")
      .range(1, 16777216);
  command
      .add_option("--image", options->images,
                  "image that the prompt asks about, of a model that sees them (PNG, JPEG, WebP, "
                  "PPM); may be given several times")
      .type_name("FILE");
  const Option raw =
      command.add_flag("--raw", options->raw,
                       "continue the text as it is, also where the model has a chat template");
  add_conversation_options(command, options->conversation);
  raw.excludes(command.option("--template"));
  add_sampling_options(command, options->sampling);
  add_speculation_options(command, options->speculation);
  command
      .add_option("--prompt-cache", options->cache,
                  "file with keys and values: what the prompt and it have in common is not "
                  "computed again; written at "
                  "the end")
      .type_name("FILE");
  command.add_flag("--ignore-end", options->ignore_end, "go on behind the model's own end of text");
  command
      .add_option("--steps-per-submission", options->steps,
                  "steps of decoding that the device takes together")
      .range(1, 32);
  add_attention_options(command, options->maps, {"decoder"});
  command.add_flag(
      "--stats", options->stats,
      "times, tokens per second, share of the bandwidth floor and memory, on standard error");
  add_common_options(command, options->common);
  command.footer(
      "A model with a chat template gets the prompt as a question, in that template; a base model "
      "continues the text,\n"
      "unless --template or --system is given. The answer appears as it is made, never half a "
      "character. Ctrl-C ends it; what\n"
      "was written stands. A prompt that leaves no room in the context is an error, never cut, "
      "unless --shift is given.\n\n"
      "Exit code: 0 success, 2 bad input, 4 no device or a device failure, 130 interrupted.\n"
      "Example: mulciber generate -m gemma-3-270m.gguf -p \"The capital of France is\" -n 16 "
      "--stats\n"
      "         mulciber generate -m model.gguf -p \"A person:\" --json-schema person.json\n"
      "         mulciber generate -m SmolVLM-256M-Instruct --image cat.jpg -p \"What is this?\"");
  command.callback([options, prompt, file, &code] {
    if (!prompt.given() && !file.given())
      throw ModelError("generate", "was given no prompt", "give -p TEXT or --prompt-file FILE");
    check_attention_file(options->maps);
    for (const std::string& word : options->maps.mask_heads) {
      const HeadName name = head_name(word, {"decoder"});
      options->model.masked_heads.push_back({name.layer, name.head});
    }
    code = run(*options);
  });
}

}  // namespace mulciber::apps
