#include "apps/cli/speculation_options.h"

#include "apps/cli/standard_error.h"
#include "models/families/open_model.h"

namespace mulciber::apps {

void add_speculation_options(Command& command, SpeculationOptions& options) {
  command
      .add_option("--draft", options.draft,
                  "a smaller model of the same vocabulary, which proposes tokens that one pass of "
                  "the model checks together")
      .type_name("FILE|DIR");
  command
      .add_option("--lookup", options.lookup,
                  "propose what followed the latest N tokens where they stood before, or fewer of "
                  "them, down to 2")
      .range(1, kMostLookup);
  command
      .add_option("--proposals", options.proposals,
                  "tokens proposed at once, at most (default: 7; of a draft as many as pay)")
      .range(1, kMostProposals);
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
  settings.lookup = options.lookup;
  settings.proposals = options.proposals;
  settings.draft = draft ? &*draft : nullptr;
}

double decode_rate(const GenerateStatistics& s) {
  return per_second(s.proposed_tokens > 0 ? s.new_tokens : s.decode_steps, s.decode_seconds);
}

void tell_speculation(const GenerateStatistics& s) {
  if (s.proposed_tokens == 0) return;
  tell("proposals         {} of {} tokens taken ({:.1f} %), {:.2f} tokens a pass\n",
       s.accepted_tokens, s.proposed_tokens,
       100.0 * static_cast<double>(s.accepted_tokens) / static_cast<double>(s.proposed_tokens),
       s.decode_steps > 0 ? static_cast<double>(s.new_tokens) / s.decode_steps : 0.0);
}

}  // namespace mulciber::apps
