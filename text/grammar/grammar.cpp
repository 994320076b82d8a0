#include "mulciber/grammar.h"

#include <utility>

#include "text/grammar/automaton.h"
#include "text/grammar/rules.h"

namespace mulciber {
namespace {

std::shared_ptr<const Automaton> made(const Rules& rules) {
  return std::make_shared<const Automaton>(compile(rules));
}

}  // namespace

Grammar::Grammar(std::shared_ptr<const Automaton> automaton) : automaton_(std::move(automaton)) {}

Grammar Grammar::json_schema(std::string_view schema) {
  return Grammar(made(read_json_schema(schema)));
}
Grammar Grammar::json_object() { return json_schema(R"({"type": "object"})"); }
Grammar Grammar::regex(std::string_view pattern) { return Grammar(made(read_regex(pattern))); }
Grammar Grammar::gbnf(std::string_view text) { return Grammar(made(read_gbnf(text))); }

}  // namespace mulciber
