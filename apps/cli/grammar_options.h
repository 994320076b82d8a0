// Options for the grammar of answers.
#pragma once

#include <optional>
#include <string>

#include "apps/cli/options.h"
#include "mulciber/grammar.h"

namespace mulciber::apps {

struct GrammarOptions {
  std::string json_schema, regex, grammar;  // at most one
  bool any() const { return !json_schema.empty() || !regex.empty() || !grammar.empty(); }
};
/// --json-schema, --regex, --grammar.
void add_grammar_options(Command& command, GrammarOptions& options);

/// The grammar that the options set, if any. Throws ModelError.
std::optional<Grammar> chosen_grammar(const GrammarOptions& options);

}  // namespace mulciber::apps
