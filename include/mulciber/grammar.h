// What a text generator's answer may be. Errors are the types of mulciber/error.h.
#pragma once

#include <memory>
#include <string_view>

#include "mulciber/export.h"

namespace mulciber {

struct Automaton;

/// A set of texts: an answer that has a grammar is one of them, and never leaves them, however it
/// is sampled. Compiled once, it serves any number of answers, models and threads.
///
/// The functions throw ModelError saying where and what is wrong with a grammar: a mistake, what is
/// not supported, or more than a grammar may be (a text of 1 MiB, 64 parentheses or schemas in one
/// another, 200,000 states, 100,000 counted repetitions).
class MULCIBER_API Grammar {
 public:
  /// JSON that is valid by a schema (draft 2020-12): type, enum, const, properties, required,
  /// additionalProperties, items, prefixItems, minItems, maxItems, minLength, maxLength, pattern,
  /// format (date, time, date-time, uuid), bounds of numbers that are whole, multipleOf (whole
  /// numbers up to 256, or with few factors but 2 and 5), anyOf, oneOf, allOf, $ref within the
  /// schema. Any other keyword is an error, unless it only describes. Properties come in the order
  /// of the schema. Narrower than the standard: where additionalProperties is not given, objects
  /// have no others than those of `properties`, lists no items behind `prefixItems`; numbers have
  /// at most 16 digits before and behind the point; oneOf is read as anyOf.
  static Grammar json_schema(std::string_view schema);
  /// Any JSON object.
  static Grammar json_object();
  /// A regular expression that the whole answer matches, as ECMAScript's, without back-references,
  /// look-around and word boundaries.
  static Grammar regex(std::string_view pattern);
  /// llama.cpp's notation of grammars; the answer is a text of the rule `root`.
  static Grammar gbnf(std::string_view text);

  /// What the library makes of it.
  const std::shared_ptr<const Automaton>& automaton() const { return automaton_; }

 private:
  explicit Grammar(std::shared_ptr<const Automaton> automaton);
  std::shared_ptr<const Automaton> automaton_;
};

}  // namespace mulciber
