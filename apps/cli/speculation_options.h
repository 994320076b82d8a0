// Options of `generate` and `chat` for speculative decoding.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "apps/cli/language_model.h"

namespace mulciber::apps {

struct SpeculationOptions {
  std::string draft;
  uint32_t prompt_lookup = 0, draft_tokens = 0;
};
constexpr uint32_t kMostPromptLookup = 64;
/// --draft, --prompt-lookup, --draft-tokens.
void add_speculation_options(Command& command, SpeculationOptions& options);

/// Loads the draft model with the loading options of the model beside it; no value where the
/// options name none. Throws as load().
std::optional<TextGenerator> load_draft(const SpeculationOptions& options,
                                        const LanguageModelOptions& model,
                                        const std::shared_ptr<Device>& device);
/// draft: returned by load_draft().
void apply(const SpeculationOptions& options, std::optional<TextGenerator>& draft,
           GenerateOptions& settings);

/// Tokens per second of decoding: a step that verifies draft tokens makes several tokens.
double decode_rate(const GenerateStatistics& statistics);
/// Prints a line for --stats, unless nothing was drafted.
void tell_speculation(const GenerateStatistics& statistics);

}  // namespace mulciber::apps
