#include "text/jinja/template.h"

#include "checkpoints/json.h"
#include "mulciber/error.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/parser.h"

namespace mulciber::jinja {

struct Template::Tree {
  Body body;
};

namespace {

ModelError error_at(const std::string& where, int line, std::string_view problem) {
  return {where + ", line " + std::to_string(line), printable(problem), {}};
}

}  // namespace

Template::Template(std::string_view source, std::string where) : where_(std::move(where)) {
  constexpr std::size_t kMostBytes = std::size_t{1} << 20;  // known ones have up to 20 KB
  if (source.size() > kMostBytes)
    throw ModelError(where_, "is a chat template of " + std::to_string(source.size()) + " bytes",
                     "no known model needs that");
  try {
    tree_ = std::make_unique<const Tree>(Tree{parse_template(source)});
  } catch (const SyntaxFault& fault) {
    throw error_at(where_, fault.line, fault.problem);
  }
}

Template::~Template() = default;
Template::Template(Template&&) noexcept = default;
Template& Template::operator=(Template&&) noexcept = default;

std::string Template::render(Variables variables, const std::optional<std::tm>& now,
                             const Limits& limits) const {
  Interpreter interpreter(limits, now);
  Scope globals{nullptr, std::move(variables)};
  try {
    return interpreter.render(tree_->body, globals);
  } catch (const Fault& fault) {
    throw error_at(where_, interpreter.line(), fault.what());
  }
}

}  // namespace mulciber::jinja
