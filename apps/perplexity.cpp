// `mulciber perplexity`: the perplexity of a model on a text, as llama-perplexity measures it.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "apps/cli/language_model.h"
#include "apps/cli/progress.h"
#include "models/adapters/adapters.h"
#include "models/core/vocabulary_check.h"
#include "models/generation/language_model.h"
#include "models/generation/perplexity.h"
#include "models/loading/open_files.h"

namespace mulciber::apps {
namespace {

constexpr uint32_t kDefaultChunk = 512;  // llama-perplexity's

struct PerplexityArguments {
  CommonOptions common;
  std::string model, file;
  std::optional<uint32_t> context;
  uint32_t chunks = 0;
  bool half_weights = false, half_activations = false, fast_activations = false;
  KeyValueStorage key_values = KeyValueStorage::kF16;
  AdapterOptions adapters;
};

int run(const PerplexityArguments& options) {
  interrupted();  // installs the handler
  const std::string text = read_text(options.file);
  const std::shared_ptr<Device> device = open_device(options.common);
  const OpenModel opened = open_files(options.model);
  opened.require(Capability::kContinueText);
  const uint32_t context =
      options.context.value_or(std::min(kDefaultChunk, opened.architecture().extents().context));
  const auto& tokenizer = opened.tokenizer();
  check_vocabulary(*tokenizer, opened.architecture().extents().vocabulary, options.model);
  const std::vector<int32_t> encoded =
      tokenizer->encode(text, {.add_special = true, .parse_special = false});
  const std::vector<int32_t> nothing =
      tokenizer->encode("", {.add_special = true, .parse_special = false});
  const std::vector<uint32_t> ids(encoded.begin(), encoded.end());
  std::optional<uint32_t> bos;
  if (!nothing.empty() && nothing.front() == encoded.front()) bos = ids.front();

  const std::unique_ptr<Model> model =
      load_model(*device, opened,
                 {.matrices = options.half_weights ? MatrixStorage::kF16 : MatrixStorage::kAsInFile,
                  .activations = options.half_activations ? DataType::kF16 : DataType::kF32,
                  .fast_activations = options.fast_activations,
                  .cache = storage_type(options.key_values),
                  .context = context,
                  .adapters = open_adapters(adapter_files(options.adapters)),
                  .merge_adapters = options.adapters.merge});
  TokenScorer scorer(*device, model->continues_text()->network(), context);
  std::optional<Progress> progress;
  const Perplexity result = perplexity(scorer, ids, context, bos, options.chunks,
                                       [&](uint32_t done, uint32_t all, double) {
                                         if (!progress) progress.emplace("chunks", all);
                                         progress->update(done);
                                         return !interrupted();
                                       });
  if (progress) progress->finish();
  if (options.common.json) {
    const nlohmann::json object = {{"perplexity", result.value},
                                   {"error", result.error},
                                   {"tokens", result.tokens},
                                   {"chunks", result.chunks},
                                   {"context", context}};
    fmt::print("{}\n", object.dump());
  } else {
    fmt::print("perplexity {:.4f} +- {:.4f} over {} tokens, the second halves of {} chunks of {}\n",
               result.value, result.error, result.tokens, result.chunks, context);
  }
  return finish(*device, options.common, interrupted() ? kInterrupted : kSuccess);
}

}  // namespace

void add_perplexity(Command& app, int& code) {
  const auto options = std::make_shared<PerplexityArguments>();
  Command command =
      app.add_subcommand("perplexity", "Measure how surprised a language model is by a text");
  command.add_option("-m,--model", options->model, "GGUF file, or Hugging Face folder")
      .required()
      .type_name("FILE|DIR");
  command.add_option("file", options->file, "text (- is standard input)")
      .required()
      .type_name("FILE");
  command
      .add_option(
          "--context", options->context,
          "tokens of a chunk (default: 512, or what the model was made for if that is less)")
      .range(2, 16777216);
  command.add_option("--chunks", options->chunks, "most chunks to look at (default: all)")
      .range(1, 16777216);
  command.add_flag("--half", options->half_weights,
                   "keep matrices in 16 bits on the device even where the file has 32");
  command.add_flag("--half-activations", options->half_activations, "keep activations in 16 bits");
  add_fast_activations_option(command, options->fast_activations);
  add_key_value_option(command, options->key_values);
  add_adapter_options(command, options->adapters);
  add_common_options(command, options->common);
  command.footer(
      "As llama.cpp's llama-perplexity does, so that figures compare: the text's tokens are cut "
      "into chunks of --context,\n"
      "each chunk begins anew (with the model's first token, where it has one), and the tokens of "
      "its second half are scored\n"
      "on those before them in the chunk. What is left over is not looked at. Special tokens in "
      "the text are plain text.\n\n"
      "Exit code: 0 success, 2 bad input, 4 no device or a device failure, 130 interrupted (with "
      "what was scored).\n"
      "Example: mulciber perplexity -m gemma-3-270m.gguf --context 256 text.txt");
  command.callback([options, &code] { code = run(*options); });
}

}  // namespace mulciber::apps
