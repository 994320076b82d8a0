// Sampling options of `generate` and `chat`.
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

/// The model's sampling settings with those of the command line above them: a filter without a
/// temperature means temperature 1 where the model would be greedy. Without a seed, each run takes
/// another one.
Sampling chosen_sampling(const SamplingOptions& options, const Sampling& of_model);

/// "temperature 0.7, top k 40, seed 5"; "the likeliest token" where sampling is greedy.
std::string describe(const Sampling& sampling);

/// Prints the settings in a line on standard error, unless they are greedy without penalties.
void tell(const Sampling& sampling, const Sampling& of_model);

}  // namespace mulciber::apps
