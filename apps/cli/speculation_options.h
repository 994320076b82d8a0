// Speculative decoding, as `generate` and `chat` ask for it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "apps/cli/language_model.h"

namespace mulciber::apps {

struct SpeculationOptions {
  std::string draft;
  uint32_t lookup = 0, proposals = 0;
};
constexpr uint32_t kMostLookup = 64;
/// --draft, --lookup, --proposals.
void add_speculation_options(Command& command, SpeculationOptions& options);

/// The draft model, loaded with what holds for the model beside it; nothing where none is asked
/// for. Throws as load().
std::optional<TextGenerator> load_draft(const SpeculationOptions& options,
                                        const LanguageModelOptions& model,
                                        const std::shared_ptr<Device>& device);
/// draft: of load_draft().
void apply(const SpeculationOptions& options, std::optional<TextGenerator>& draft,
           GenerateOptions& settings);

/// Tokens per second of decoding: a pass that checks proposals makes several.
double decode_rate(const GenerateStatistics& statistics);
/// A line for --stats; nothing where nothing was proposed.
void tell_speculation(const GenerateStatistics& statistics);

}  // namespace mulciber::apps
