// Options that say how the next token is chosen, as `generate` and `chat` have them.
#pragma once

#include <optional>
#include <string>

#include "apps/cli/options.h"
#include "mulciber/text_generator.h"

namespace mulciber::apps {

struct SamplingOptions {
  std::optional<float> temperature, top_p, min_p, typical_p, repetition_penalty, presence_penalty,
      frequency_penalty;
  std::optional<uint32_t> top_k, penalty_window;
  std::optional<uint64_t> seed;
};
void add_sampling_options(Command& command, SamplingOptions& options);

/// What the model asks for, and above it what the command line says: a filter without a temperature
/// means 1 where the model would take the likeliest token. Where nobody gave a seed, another one
/// every time.
Sampling chosen_sampling(const SamplingOptions& options, const Sampling& of_model);

/// "temperature 0.7, top k 40, seed 5"; "the likeliest token" where nothing is left to chance.
std::string describe(const Sampling& sampling);

/// Says in a line on standard error what is used, unless it is the likeliest token without
/// penalties.
void tell(const Sampling& sampling, const Sampling& of_model);

}  // namespace mulciber::apps
