// Grammars for guided decoding (structured output). Errors are the types of mulciber/error.h.
#pragma once

#include <memory>
#include <string_view>

#include "mulciber/export.h"

namespace mulciber {

struct Automaton;

/// A set of texts. A completion with a grammar is one of them, whatever the sampling. A compiled
/// grammar serves any number of completions, models and threads.
///
/// The functions throw ModelError with the position and the fault: a syntax error, an unsupported
/// feature, or an exceeded limit (1 MiB of text, 64 nested parentheses or schemas, 200,000 states,
/// 100,000 counted repetitions).
class MULCIBER_API Grammar {
 public:
  /// JSON that is valid by a schema (draft 2020-12): type, enum, const, properties, required,
  /// additionalProperties, items, prefixItems, minItems, maxItems, minLength, maxLength, pattern,
  /// format (date, time, date-time, uuid), integer bounds of numbers, multipleOf (integers up to
  /// 256, or with few prime factors other than 2 and 5), anyOf, oneOf, allOf, $ref within the
  /// schema. Any other keyword is an error, unless it only describes. Properties come in the order
  /// of the schema. Four rules are narrower than the standard: objects have only the properties of
  /// `properties` unless additionalProperties is given, arrays have no items after `prefixItems`,
  /// numbers have at most 16 digits before and after the point, and oneOf is read as anyOf.
  static Grammar json_schema(std::string_view schema);
  /// Any JSON object.
  static Grammar json_object();
  /// A regular expression that the whole completion matches: ECMAScript's syntax without
  /// back-references, look-around and word boundaries.
  static Grammar regex(std::string_view pattern);
  /// A grammar in llama.cpp's notation (GBNF); the completion matches the rule `root`.
  static Grammar gbnf(std::string_view text);

  /// The compiled automaton, for the library's own use.
  const std::shared_ptr<const Automaton>& automaton() const { return automaton_; }

 private:
  explicit Grammar(std::shared_ptr<const Automaton> automaton);
  std::shared_ptr<const Automaton> automaton_;
};

}  // namespace mulciber
