/* Mulciber for C: cancellation of calls that compute and wait. C11. */
#ifndef MULCIBER_C_CANCEL_H
#define MULCIBER_C_CANCEL_H

#include "mulciber/c/context.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Asks the calls that were given it to end early, with what they have. Must outlive them. */
typedef struct MulciberCancel MulciberCancel;

MULCIBER_API MulciberStatus mulciber_create_cancel(MulciberContext* context,
                                                   MulciberCancel** cancel);
MULCIBER_API void mulciber_destroy_cancel(MulciberCancel* cancel);

/* May be called from any thread, from callbacks and from signal handlers. */
MULCIBER_API void mulciber_request_cancel(MulciberCancel* cancel);

/* Makes it usable for further calls. */
MULCIBER_API void mulciber_reset_cancel(MulciberCancel* cancel);

#ifdef __cplusplus
}
#endif

#endif
