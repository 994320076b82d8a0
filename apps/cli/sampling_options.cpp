#include "apps/cli/sampling_options.h"

#include <fmt/format.h>

#include <cstdio>
#include <random>

#include "apps/cli/standard_error.h"

namespace mulciber::apps {

void add_sampling_options(Command& command, SamplingOptions& options) {
  const auto add = [&](const char* name, auto& to, const char* help) {
    return command.add_option(name, to, help).group("How the next token is chosen");
  };
  add("--temperature", options.temperature,
      "above 0: draw by probability, the higher the more evenly; 0: always the likeliest")
      .range(0.0, 1e6);
  add("--top-k", options.top_k, "among so many of the likeliest (0: all)").range(0, 1 << 24);
  add("--top-p", options.top_p, "among the likeliest that have this probability together (1: all)")
      .range(1e-6, 1.0);
  add("--min-p", options.min_p, "among those of this share of the likeliest's probability (0: all)")
      .range(0.0, 1.0);
  add("--typical", options.typical_p, "among the most typical of this probability (1: all)")
      .range(1e-6, 1.0);
  add("--repeat-penalty", options.repetition_penalty,
      "above 1: make what was said already less likely")
      .range(1e-3, 1e3);
  add("--presence-penalty", options.presence_penalty,
      "taken off the logit of what was said already")
      .range(-1e3, 1e3);
  add("--frequency-penalty", options.frequency_penalty, "taken off it for every time")
      .range(-1e3, 1e3);
  add("--penalty-window", options.penalty_window,
      "tokens, the latest, that penalties look at (default: the model's files', or 64)");
  add("--seed", options.seed, "where chance begins: the same seed gives the same answer");
}

Sampling chosen_sampling(const SamplingOptions& options, const Sampling& of_model) {
  Sampling sampling = of_model;
  const auto set = [](const auto& given, auto& to) {
    if (given) to = *given;
  };
  const bool filters = options.top_k || options.top_p || options.min_p || options.typical_p;
  if (filters && sampling.temperature == 0) sampling.temperature = 1;
  const bool penalties =
      options.repetition_penalty || options.presence_penalty || options.frequency_penalty;
  if (penalties) sampling.penalty_window = Sampling{}.penalty_window;
  set(options.temperature, sampling.temperature);
  set(options.top_k, sampling.top_k);
  set(options.top_p, sampling.top_p);
  set(options.min_p, sampling.min_p);
  set(options.typical_p, sampling.typical_p);
  set(options.repetition_penalty, sampling.repetition_penalty);
  set(options.presence_penalty, sampling.presence_penalty);
  set(options.frequency_penalty, sampling.frequency_penalty);
  set(options.penalty_window, sampling.penalty_window);
  if (options.seed)
    sampling.seed = *options.seed;
  else if (sampling.temperature > 0)
    sampling.seed = std::random_device{}();
  return sampling;
}

std::string describe(const Sampling& sampling) {
  const Sampling off;
  std::string text = sampling.temperature > 0
                         ? fmt::format("temperature {:g}", sampling.temperature)
                         : "the likeliest token";
  const auto add = [&](const char* name, auto value, auto plain) {
    if (value != plain) text += fmt::format(", {} {:g}", name, static_cast<double>(value));
  };
  if (sampling.temperature > 0) {
    add("top k", sampling.top_k, off.top_k);
    add("top p", sampling.top_p, off.top_p);
    add("min p", sampling.min_p, off.min_p);
    add("typical", sampling.typical_p, off.typical_p);
  }
  add("repeat penalty", sampling.repetition_penalty, off.repetition_penalty);
  add("presence penalty", sampling.presence_penalty, off.presence_penalty);
  add("frequency penalty", sampling.frequency_penalty, off.frequency_penalty);
  if (sampling.temperature > 0) text += fmt::format(", seed {}", sampling.seed);
  return text;
}

void tell(const Sampling& sampling, const Sampling& of_model) {
  if (describe(sampling) == describe(Sampling{})) return;
  Sampling same = of_model;
  same.seed = sampling.seed;
  tell("sampling: {}{}\n", describe(sampling), same == sampling ? " (from the model's files)" : "");
}

}  // namespace mulciber::apps
