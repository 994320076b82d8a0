/* Mulciber for C: grammars for guided decoding. C11. */
#ifndef MULCIBER_C_GRAMMAR_H
#define MULCIBER_C_GRAMMAR_H

#include "mulciber/c/context.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum MulciberGrammarKind {
  MULCIBER_GRAMMAR_JSON_SCHEMA = 0,
  MULCIBER_GRAMMAR_JSON_OBJECT = 1, /* any object; text: NULL */
  MULCIBER_GRAMMAR_REGEX = 2,       /* matched by the whole answer */
  MULCIBER_GRAMMAR_GBNF = 3,        /* llama.cpp's notation of grammars */
  MULCIBER_GRAMMAR_MAX = 0x7fffffff
} MulciberGrammarKind;

/* Makes a grammar for MulciberGenerateInfo::grammar of any number of answers; mulciber/grammar.h
 * lists what is supported. It may be destroyed once the answers have begun. */
MULCIBER_API MulciberStatus mulciber_make_grammar(MulciberContext* context,
                                                  MulciberGrammarKind kind, const char* text,
                                                  MulciberGrammar** grammar);
MULCIBER_API void mulciber_destroy_grammar(MulciberGrammar* grammar);

#ifdef __cplusplus
}
#endif

#endif
