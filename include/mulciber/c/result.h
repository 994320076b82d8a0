/* Mulciber for C: results of calls that compute and wait. C11. */
#ifndef MULCIBER_C_RESULT_H
#define MULCIBER_C_RESULT_H

#include "mulciber/c/context.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Owns what a call has computed: lists and texts that the call gives point into it. It does not
 * depend on the model or device, which may be destroyed before. */
typedef struct MulciberResult MulciberResult;

MULCIBER_API void mulciber_destroy_result(MulciberResult* result);

#ifdef __cplusplus
}
#endif

#endif
