// How commands load a language model.
#pragma once

#include <memory>
#include <string>

#include "apps/cli/adapters.h"
#include "apps/cli/command.h"
#include "apps/cli/fast_activations.h"
#include "apps/cli/key_values.h"
#include "mulciber/text_generator.h"
#include "runtime/choices.h"

namespace mulciber::apps {

struct LanguageModelOptions {
  std::string model;
  uint32_t context = 0;
  bool half_weights = false, half_activations = false, fast_activations = false;
  KeyValueStorage key_values = KeyValueStorage::kF16;
  std::vector<HeadNumber> masked_heads;
  AdapterOptions adapters;
};
/// --context, --half, --half-activations, --fast-activations, --kv: the loading options.
void add_loading_options(Command& command, LanguageModelOptions& options);
/// -m, and the loading options.
void add_language_model_options(Command& command, LanguageModelOptions& options);

GeneratorOptions generator_options(const LanguageModelOptions& options);
/// Opens the device for a model. On hardware, rows are first chosen by measurement
/// (conformance/tune.h), for at most two seconds and once per driver version; MULCIBER_TUNE=0 skips
/// this, and 1 measures on software drivers as well.
std::shared_ptr<Device> open_tuned_device(const CommonOptions& common,
                                          const LanguageModelOptions& options,
                                          const OpenModel& model, double self_test_seconds = 2);
/// The problems that a language model's programs ask selection for: those of a decode step and of
/// the longest prefill pass. Nothing is loaded.
std::shared_ptr<AskedProblems> asked_problems(Device& device, const LanguageModelOptions& options,
                                              const OpenModel& model);

/// Loads a model with a progress bar. tell_plan: before, prints on standard error how much memory
/// it will take.
TextGenerator load(const LanguageModelOptions& options, std::shared_ptr<Device> device,
                   std::shared_ptr<const OpenModel> model, bool tell_plan);

double mebibytes(uint64_t bytes);
/// The rate; 0 where no time has passed.
double per_second(uint64_t count, double seconds);

/// The text of a whole file; "-" is standard input. Throws ModelError.
std::string read_text(const std::string& file);
/// Writes to standard output at once. Throws ModelError where it cannot be written.
void write_piece(std::string_view piece);

}  // namespace mulciber::apps
