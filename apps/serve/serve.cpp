// `mulciber serve`: models behind an HTTP interface like OpenAI's.
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <set>
#include <thread>

#include "apps/cli/command.h"
#include "apps/cli/speculation_options.h"
#include "apps/serve/api/endpoints.h"
#include "apps/serve/http/access.h"
#include "apps/serve/http/log.h"
#include "apps/serve/stop_signal.h"
#include "mulciber/error.h"

namespace mulciber::apps::serve {
namespace {

struct ServeArguments {
  CommonOptions common;
  std::vector<std::string> models;
  std::vector<std::string> adapters;  // NAME=PATH or MODEL:NAME=PATH
  ModelSettings model;
  SpeculationOptions speculation;
  HttpSettings http;
  std::string key_file;
  uint32_t port = 8080, clients = 128, body_mebibytes = 8, waiting = 64, tokens = 0, seconds = 600,
           attention_tokens = 512, stop_seconds = 30, header_seconds = 10, body_seconds = 60;
  bool log_json = false, reuse_completions = false;
  uint32_t reopen = 5, responses = 1000;
};

ServedModels open_models(const ServeArguments& options) {
  ServedModels models;
  std::set<std::string> names;
  for (const std::string& argument : options.models) {
    models.push_back(open_served(argument));
    if (!names.insert(models.back()->id).second)
      throw SettingError("model", "'" + models.back()->id + "' is the name of two models",
                         "give one of them another: -m NAME=" + models.back()->path);
  }
  for (const std::string& argument : options.adapters) add_adapter(models, argument);
  if (!options.speculation.draft.empty()) add_draft(models, options.speculation.draft);
  return models;
}

/// A device that is tuned for the first language model, if there is one.
std::shared_ptr<Device> open_for(const ServeArguments& options, const ServedModels& models) {
  for (const auto& model : models)
    if (model->files->capabilities().has(Capability::kContinueText))
      return open_tuned_device(options.common, options.model.language, *model->files);
  return open_device(options.common);
}

/// Watches for signals and for the end of the server. At the first signal no new request is
/// admitted, and those inside may finish; after the time for that, or at the second signal, the
/// others are cancelled.
class Stopper {
 public:
  Stopper(Engine& engine, HttpServer& server, RequestLog& log, uint32_t seconds)
      : thread_([this, &engine, &server, &log, seconds] { watch(engine, server, log, seconds); }) {}
  ~Stopper() {
    ended_ = true;
    thread_.join();
  }

 private:
  void watch(Engine& engine, HttpServer& server, RequestLog& log, uint32_t seconds) const {
    using Clock = std::chrono::steady_clock;
    constexpr std::chrono::milliseconds kLook(50);
    while (stop_signals() == 0) {
      if (ended_) return;
      std::this_thread::sleep_for(kLook);
    }
    log.event("stopping: answers under way may finish");
    engine.admission().close("the server is stopping");
    const auto end = Clock::now() + std::chrono::seconds(seconds);
    while (stop_signals() < 2 && Clock::now() < end)
      if (engine.admission().wait_until_empty(kLook)) break;
    engine.cancel_all();
    server.stop();
  }

  std::atomic<bool> ended_{false};
  std::thread thread_;
};

int run_server(ServeArguments& options) {
  options.http.port = static_cast<int>(options.port);
  options.http.clients = options.clients;
  options.http.body_bytes = size_t{options.body_mebibytes} << 20;
  options.http.header_seconds = static_cast<int>(options.header_seconds);
  options.http.body_seconds = static_cast<int>(options.body_seconds);
  if (!options.key_file.empty()) options.http.keys = read_keys(options.key_file);
  if (const char* key = std::getenv("MULCIBER_API_KEY"); key && *key)
    options.http.keys.emplace_back(key);

  // Browsers send origins without a slash at the end.
  for (std::string& origin : options.http.origins)
    if (origin.ends_with('/')) origin.pop_back();

  const bool drafts = !options.speculation.draft.empty();
  if ((drafts || options.speculation.prompt_lookup > 0) && options.model.sequences == 1)
    throw SettingError(drafts ? "draft" : "prompt-lookup", "is asked for with one slot",
                       "ask for more with --sequences: draft tokens are verified in free slots");
  ServedModels models = open_models(options);
  std::shared_ptr<Device> device;  // the engine thread's, once that runs
  const auto open = [&options, &device](const ServedModels& to_load) {
    device.reset();  // two devices would not fit
    device = open_for(options, to_load);
    for (const auto& model : to_load) load_served(*model, device, options.model);
  };
  open(models);

  Metrics metrics;
  RequestLog log(options.log_json);
  EngineDevice of_engine = {
      .attempts = options.reopen,
      .used_bytes = [&device] { return device ? device->memory().used() : 0; },
      .tell = [&log](const std::string& words) { log.event(words); }};
  if (options.reopen > 0) of_engine.reopen = open;
  Engine engine(std::move(models), options.model.sequences, options.waiting, metrics,
                std::move(of_engine));
  HttpServer server(options.http);
  constexpr size_t kKeptBytes = size_t{64} << 20;
  ResponseStore responses(options.responses, kKeptBytes);
  Service service = {engine,
                     metrics,
                     responses,
                     {.most_seconds = static_cast<int>(options.seconds),
                      .most_tokens = options.tokens,
                      .reuse_completions = options.reuse_completions,
                      .prompt_lookup = options.speculation.prompt_lookup,
                      .draft_tokens = options.speculation.draft_tokens},
                     options.attention_tokens};
  add_endpoints(server, service);
  server.on_record([&](const HttpRecord& record) {
    log.request(record);
    metrics.count_request(server.known_path(record.path), record.status, record.seconds);
  });
  watch_stop_signals();
  const int port = server.bind();
  for (const auto& model : engine.models())
    log.event(fmt::format("model {}: {}", model->id, model->does()));
  const bool v6 = options.http.host.find(':') != std::string::npos;
  const std::string host = v6 ? "[" + options.http.host + "]" : options.http.host;
  log.event(fmt::format("listening on http://{}:{}", host, port));
  if (!is_loopback(options.http.host) && options.http.keys.empty())
    log.event("warning: other machines may ask without a key; set MULCIBER_API_KEY");
  {
    const Stopper stopper(engine, server, log, options.stop_seconds);
    server.run();
  }
  log.event("stopped");
  if (!engine.failed()) return finish(*device, options.common, kSuccess);
  return kDeviceFailed;
}

void add_limits(Command& command, ServeArguments& options) {
  const auto add = [&](const char* name, uint32_t& to, int low, int high, const char* help) {
    return command.add_option(name, to, help).range(low, high).shows_default().group("Limits");
  };
  add("--sequences", options.model.sequences, 1, 256,
      "slots: answers of a model that are decoded together");
  add("--cache-tokens", options.model.cache_tokens, 0, 1 << 30,
      "tokens of all sequences of a model that there is memory for (0: a context for each slot)");
  add("--draft-rows", options.model.draft_rows, 0, 256,
      "draft tokens that a step of a model verifies, of all answers together (0: as many as slots "
      "are free)");
  add("--proposal-rows", options.model.draft_rows, 0, 256, "--draft-rows").group("");  // in 0.1
  add("--queue", options.waiting, 0, 100000, "answers that may wait; more are told to come back");
  add("--clients", options.clients, 1, 10000, "connections at once");
  add("--tokens", options.tokens, 0, 16777216,
      "most tokens of an answer (0: what the context has room for)");
  add("--attention-tokens", options.attention_tokens, 0, 1048576,
      "most tokens of prompt and answer whose attention may be asked for; 0: none");
  add("--seconds", options.seconds, 1, 86400, "longest time of an answer, its wait included");
  add("--body", options.body_mebibytes, 1, 4096, "largest body of a request, in MiB");
  add("--header-seconds", options.header_seconds, 1, 3600, "in which a request's headers arrive");
  add("--body-seconds", options.body_seconds, 1, 3600, "in which its body arrives");
  add("--responses", options.responses, 0, 1000000,
      "responses that later requests may follow, kept in memory, in 64 MiB at most");
  add("--reopen", options.reopen, 0, 1000,
      "attempts to open a lost device again, in a row (0: none)");
  add("--stop-seconds", options.stop_seconds, 0, 86400,
      "in which answers under way may finish after SIGTERM");
}

}  // namespace
}  // namespace mulciber::apps::serve

namespace mulciber::apps {

void add_serve(Command& app, int& code) {
  const auto options = std::make_shared<serve::ServeArguments>();
  Command command = app.add_subcommand("serve", "Serve models over HTTP, as OpenAI's API does");
  command
      .add_option("-m,--model", options->models,
                  "GGUF file or Hugging Face folder; NAME=FILE gives it another name; may be given "
                  "several times")
      .required()
      .one_value_each()
      .type_name("FILE|DIR");
  command
      .add_option("--lora", options->adapters,
                  "LoRA adapter that requests may name: a folder of PEFT's or a GGUF file, of the "
                  "model MODEL (default: the only language model); may be given several times")
      .one_value_each()
      .type_name("[MODEL:]NAME=PATH");
  command
      .add_option("--host", options->http.host,
                  "address to listen on; 0.0.0.0: all, so that other machines may ask")
      .shows_default();
  command.add_option("--port", options->port, "port to listen on (0: one that is free)")
      .range(0, 65535)
      .shows_default();
  command
      .add_option("--api-key-file", options->key_file,
                  "file with keys, one a line: who asks must have one (so too with "
                  "MULCIBER_API_KEY in the environment)")
      .type_name("FILE");
  command
      .add_option("--cors", options->http.origins,
                  "origins of web pages that may ask, such as https://example.org, or *")
      .delimiter(',')
      .one_value_each()
      .type_name("LIST");
  command
      .add_option("--template", options->model.chat_template,
                  "how messages become a prompt: a name (see `mulciber chat --help`) or a file of "
                  "Jinja (default: the model's own)")
      .type_name("NAME|FILE");
  command.add_flag("--reuse-completions", options->reuse_completions,
                   "take a completion that comes back as history as it was computed; its "
                   "continuation may then differ in rounding");
  command.add_flag("--reuse-answers", options->reuse_completions, "deprecated: --reuse-completions")
      .group("");
  command.add_flag("--log-json", options->log_json, "an object a line as log, for programs");
  add_speculation_options(command, options->speculation);
  serve::add_limits(command, *options);
  add_loading_options(command, options->model.language);
  add_common_options(command, options->common);
  command.footer(
      "Endpoints: /v1/chat/completions, /v1/completions, /v1/responses, /v1/embeddings, "
      "/v1/audio/transcriptions, /v1/models, /translate, /attention,\n"
      "/tokenize, /detokenize, /health, /metrics, and a page to chat at /. "
      "docs/reference/http-api.md has all. "
      "SIGTERM and Ctrl-C let answers under way finish.\n\n"
      "Exit code: 0 stopped, 2 bad input, 4 no device or a device failure.\n"
      "Example: mulciber serve -m models/qwen3-0.6b.gguf --port 8080");
  command.callback([options, &code] {
    options->log_json = options->log_json || options->common.json;
    code = serve::run_server(*options);
  });
}

}  // namespace mulciber::apps
