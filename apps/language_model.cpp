#include "apps/language_model.h"

#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <optional>

#include "apps/progress.h"

namespace mulciber::apps {

double mebibytes(uint64_t bytes) { return static_cast<double>(bytes) / 1048576; }

double per_second(uint64_t count, double seconds) {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

std::string read_text(const std::string& file) {
  std::ifstream in(file == "-" ? "/dev/stdin" : file, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  if (!in && text.empty())
    throw ModelError(file, "cannot be read", "give a text file, or - for standard input");
  return text;
}

void write_piece(std::string_view piece) {
  std::fwrite(piece.data(), 1, piece.size(), stdout);
  flush_output();
}

void add_language_model_options(Command& command, LanguageModelOptions& options) {
  command.add_option("-m,--model", options.model, "GGUF file, or Hugging Face folder")
      .required()
      .type_name("FILE|DIR");
  command
      .add_option("--context", options.context,
                  "tokens of prompts and answers together (default: the model's own, at most 4096)")
      .range(1, 16777216);
  command.add_flag("--half", options.half_weights,
                   "keep matrices in 16 bits on the device even where the file has 32");
  command.add_flag("--half-activations", options.half_activations, "keep activations in 16 bits");
  add_key_value_option(command, options.key_values);
}

TextGenerator load(const LanguageModelOptions& options, std::shared_ptr<Device> device,
                   std::shared_ptr<const OpenModel> model, bool tell_plan) {
  std::optional<Progress> progress;
  GeneratorOptions loading = {
      .load = {.half_weights = options.half_weights, .half_activations = options.half_activations},
      .key_values = options.key_values,
      .context = options.context,
      .masked_heads = options.masked_heads};
  loading.load.on_progress = [&](uint64_t done, uint64_t total) {
    if (!progress) progress.emplace("loading, MiB", total >> 20);
    progress->update(done >> 20);
    if (done == total) progress->finish();
  };
  if (tell_plan) {
    loading.on_plan = [](const MemoryPrediction& predicted) {
      fmt::print(stderr,
                 "memory plan       {:.1f} MiB: {:.1f} weights, {:.1f} keys and values, {:.1f} "
                 "activations\n",
                 mebibytes(predicted.weight_bytes + predicted.context_bytes),
                 mebibytes(predicted.weight_bytes), mebibytes(predicted.key_value_bytes),
                 mebibytes(predicted.context_bytes - predicted.key_value_bytes));
    };
  }
  return TextGenerator(std::move(device), std::move(model), loading);
}

}  // namespace mulciber::apps
