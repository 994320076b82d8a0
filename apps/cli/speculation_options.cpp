#include "apps/cli/speculation_options.h"

#include "apps/cli/standard_error.h"
#include "models/families/open_model.h"

namespace mulciber::apps {

void add_speculation_options(Command& command, SpeculationOptions& options) {
  command
      .add_option("--draft", options.draft,
                  "a smaller model of the same vocabulary, which drafts tokens that a decode step "
                  "of the model verifies together")
      .type_name("FILE|DIR");
  const auto add = [&](const char* name, uint32_t& to, int most, const char* help) {
    return command.add_option(name, to, help).range(1, most);
  };
  add("--prompt-lookup", options.prompt_lookup, kMostPromptLookup,
      "draft what followed the latest N tokens where they stood before, or fewer of them, down to "
      "2");
  add("--draft-tokens", options.draft_tokens, kMostDraftTokens,
      "draft tokens verified at once, at most (default: 7; of a draft model as many as pay)");
  // Their names in 0.1.
  add("--lookup", options.prompt_lookup, kMostPromptLookup, "--prompt-lookup").group("");
  add("--proposals", options.draft_tokens, kMostDraftTokens, "--draft-tokens").group("");
}

std::optional<TextGenerator> load_draft(const SpeculationOptions& options,
                                        const LanguageModelOptions& model,
                                        const std::shared_ptr<Device>& device) {
  if (options.draft.empty()) return std::nullopt;
  const std::shared_ptr<const OpenModel> files = open_model(options.draft);
  LanguageModelOptions loading = model;
  loading.adapters = {};  // adapters belong to the model
  loading.model = options.draft;
  loading.masked_heads.clear();
  return load(loading, device, files, false);
}

void apply(const SpeculationOptions& options, std::optional<TextGenerator>& draft,
           GenerateOptions& settings) {
  settings.prompt_lookup = options.prompt_lookup;
  settings.draft_tokens = options.draft_tokens;
  settings.draft = draft ? &*draft : nullptr;
}

double decode_rate(const GenerateStatistics& s) {
  return per_second(s.draft_tokens > 0 ? s.new_tokens : s.decode_steps, s.decode_seconds);
}

void tell_speculation(const GenerateStatistics& s) {
  if (s.draft_tokens == 0) return;
  tell("draft tokens      {} of {} accepted ({:.1f} %), {:.2f} tokens a step\n", s.accepted_tokens,
       s.draft_tokens,
       100.0 * static_cast<double>(s.accepted_tokens) / static_cast<double>(s.draft_tokens),
       s.decode_steps > 0 ? static_cast<double>(s.new_tokens) / s.decode_steps : 0.0);
}

}  // namespace mulciber::apps
