#include "apps/cli/language_model.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>

#include "apps/cli/progress.h"
#include "apps/cli/standard_error.h"
#include "conformance/tune.h"
#include "models/families/open_model.h"

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

void add_loading_options(Command& command, LanguageModelOptions& options) {
  command
      .add_option("--context", options.context,
                  "tokens of prompts and answers together (default: the model's own, at most 4096)")
      .range(1, 16777216);
  command.add_flag("--half", options.half_weights,
                   "keep matrices in 16 bits on the device even where the file has 32");
  command.add_flag("--half-activations", options.half_activations, "keep activations in 16 bits");
  add_fast_activations_option(command, options.fast_activations);
  add_key_value_option(command, options.key_values);
}

void add_language_model_options(Command& command, LanguageModelOptions& options) {
  command.add_option("-m,--model", options.model, "GGUF file, or Hugging Face folder")
      .required()
      .type_name("FILE|DIR");
  add_loading_options(command, options);
  add_adapter_options(command, options.adapters);
}

GeneratorOptions generator_options(const LanguageModelOptions& options) {
  return {.load = {.half_weights = options.half_weights,
                   .half_activations = options.half_activations,
                   .fast_activations = options.fast_activations,
                   .adapters = adapter_files(options.adapters),
                   .merge_adapters = options.adapters.merge},
          .key_values = options.key_values,
          .context = options.context,
          .masked_heads = options.masked_heads};
}

std::shared_ptr<AskedProblems> asked_problems(Device& device, const LanguageModelOptions& options,
                                              const OpenModel& model) {
  auto asked = std::make_shared<AskedProblems>();
  device.watch_selection(asked);
  TextGenerator::predict(device, model, generator_options(options));
  device.watch_selection(nullptr);
  return asked;
}

namespace {

/// Measures rows. Returns whether the choices were stored. A model runs without them, so an error
/// that prevents it is only printed.
bool measure_rows(const CommonOptions& common, const AskedProblems& asked) {
  conformance::TuneOptions tuning{.cancelled = interrupted};
  std::optional<Progress> progress;
  tuning.progress = [&](size_t done, size_t total) {
    if (!progress) progress.emplace("measuring kernels, once per driver version", total);
    progress->update(done);
  };
  try {
    const conformance::TuneReport report = conformance::tune(common.device_options, asked, tuning);
    if (progress) progress->finish();
    if (!report.failed.empty()) tell("mulciber: {}\n", describe(report.failed));
    if (common.verbose && report.tuned.size() + report.left > 0)
      tell("tuned: {} problems measured, {} left for the next start, {:.1f} s\n",
           report.tuned.size(), report.left, report.seconds);
    return report.kept;
  } catch (const std::exception& error) {
    if (progress) progress->finish();
    tell("mulciber: kernels were not measured, and the first that stand in the table serve: {}\n",
         error.what());
    return false;
  }
}

}  // namespace

std::shared_ptr<Device> open_tuned_device(const CommonOptions& common,
                                          const LanguageModelOptions& options,
                                          const OpenModel& model, double self_test_seconds) {
  std::shared_ptr<Device> device = open_device(common, self_test_seconds);
  const char* variable = std::getenv("MULCIBER_TUNE");
  const std::string wanted = variable ? variable : "";
  const bool wished = wanted.empty() ? device->capabilities().has(kGpu) : wanted != "0";
  if (!wished || common.device_options.ignore_verdicts) return device;
  const std::shared_ptr<AskedProblems> asked = asked_problems(*device, options, model);
  if (conformance::untuned(device->capabilities(), *asked) == 0) return device;
  // Choices that cannot be stored would be measured again at every start.
  if (!Choices(device->capabilities(), common.device_options.cache_folder).keep({})) return device;
  const bool kept = measure_rows(common, *asked);
  if (!kept) return device;
  device.reset();
  return open_device(common, self_test_seconds);
}

TextGenerator load(const LanguageModelOptions& options, std::shared_ptr<Device> device,
                   std::shared_ptr<const OpenModel> model, bool tell_plan) {
  std::optional<Progress> progress;
  GeneratorOptions loading = generator_options(options);
  loading.load.on_progress = [&](uint64_t done, uint64_t total) {
    if (!progress) progress.emplace("loading, MiB", total >> 20);
    progress->update(done >> 20);
    if (done == total) progress->finish();
  };
  if (tell_plan) {
    loading.on_plan = [](const MemoryPrediction& predicted) {
      tell(
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
