// C functions for grammars.
#include "mulciber/c/grammar.h"

#include "capi/handles.h"
#include "capi/structures.h"

namespace mulciber::c {
namespace {

Grammar grammar_of(MulciberGrammarKind kind, const char* text) {
  switch (kind) {
    case MULCIBER_GRAMMAR_JSON_SCHEMA: return Grammar::json_schema(&given_to(text, "text"));
    case MULCIBER_GRAMMAR_JSON_OBJECT: return Grammar::json_object();
    case MULCIBER_GRAMMAR_REGEX: return Grammar::regex(&given_to(text, "text"));
    case MULCIBER_GRAMMAR_GBNF: return Grammar::gbnf(&given_to(text, "text"));
    default: break;
  }
  refuse_enumerator("kind", kind, "MulciberGrammarKind");
}

}  // namespace
}  // namespace mulciber::c

using namespace mulciber;
using namespace mulciber::c;

MulciberStatus mulciber_make_grammar(MulciberContext* context, MulciberGrammarKind kind,
                                     const char* text, MulciberGrammar** grammar) {
  return guarded(context, [&] {
    given_to(grammar, "grammar") = nullptr;
    *grammar = new MulciberGrammar{grammar_of(kind, text)};
  });
}

void mulciber_destroy_grammar(MulciberGrammar* grammar) { delete grammar; }
