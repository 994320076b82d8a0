#include "apps/cli/grammar_options.h"

#include "apps/cli/language_model.h"

namespace mulciber::apps {

void add_grammar_options(Command& command, GrammarOptions& options) {
  const auto add = [&](const char* name, std::string& to, const char* help, const char* type) {
    return command.add_option(name, to, help).group("What an answer may be").type_name(type);
  };
  const Option schema =
      add("--json-schema", options.json_schema,
          "JSON that is valid by this schema: a file, or the schema itself", "FILE|SCHEMA");
  const Option regex =
      add("--regex", options.regex, "a text that this regular expression matches", "PATTERN");
  const Option grammar = add("--grammar", options.grammar,
                             "a text of this grammar, in llama.cpp's notation (GBNF)", "FILE");
  schema.excludes(regex);
  schema.excludes(grammar);
  regex.excludes(grammar);
}

std::optional<Grammar> chosen_grammar(const GrammarOptions& options) {
  if (!options.regex.empty()) return Grammar::regex(options.regex);
  if (!options.grammar.empty()) return Grammar::gbnf(read_text(options.grammar));
  if (options.json_schema.empty()) return std::nullopt;
  const size_t first = options.json_schema.find_first_not_of(" \t\r\n");
  const bool is_text = first != std::string::npos && options.json_schema[first] == '{';
  return Grammar::json_schema(is_text ? options.json_schema : read_text(options.json_schema));
}

}  // namespace mulciber::apps
