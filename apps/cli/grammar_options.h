// What an answer may be, as commands ask for it.
#pragma once

#include <optional>
#include <string>

#include "apps/cli/options.h"
#include "mulciber/grammar.h"

namespace mulciber::apps {

struct GrammarOptions {
  std::string json_schema, regex, grammar;  // one at most
  bool any() const { return !json_schema.empty() || !regex.empty() || !grammar.empty(); }
};
/// --json-schema, --regex, --grammar.
void add_grammar_options(Command& command, GrammarOptions& options);

/// What answers may be, where the options say so. Throws ModelError.
std::optional<Grammar> chosen_grammar(const GrammarOptions& options);

}  // namespace mulciber::apps
