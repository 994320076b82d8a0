/* Mulciber for C: sequences of token ids. C11. */
#ifndef MULCIBER_C_ID_SEQUENCE_H
#define MULCIBER_C_ID_SEQUENCE_H

#include "mulciber/c/context.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Token ids, given to a function. Of a list of sequences all have the size of the first. */
typedef struct MulciberIdSequence {
  uint32_t size;
  uint32_t count;
  const uint32_t* ids;
} MulciberIdSequence;

#ifdef __cplusplus
}
#endif

#endif
