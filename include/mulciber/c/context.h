/* Mulciber for C: versions, handles, and how calls fail. mulciber_c.h has the rules of all
 * functions. C11. */
#ifndef MULCIBER_C_CONTEXT_H
#define MULCIBER_C_CONTEXT_H

#include <stddef.h>
#include <stdint.h>

#include "mulciber/export.h"
#include "mulciber/version.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef uint32_t MulciberBool; /* 0: false; any other value: true */

typedef enum MulciberStatus {
  MULCIBER_OK = 0,
  MULCIBER_ERROR_UNAVAILABLE = 1,   /* no such device, or it lacks something required */
  MULCIBER_ERROR_OUT_OF_MEMORY = 2, /* device or CPU memory */
  MULCIBER_ERROR_DEVICE_LOST = 3,   /* sticky: everything can be destroyed, nothing else works */
  MULCIBER_ERROR_DEVICE = 4,        /* another failure of a Vulkan call */
  MULCIBER_ERROR_KERNEL = 5,        /* no kernel serves, or the driver refused one */
  MULCIBER_ERROR_SETTING = 6,       /* an invalid option, argument or order of calls */
  MULCIBER_ERROR_MODEL = 7,         /* a file or text that cannot be used */
  MULCIBER_ERROR_APPLICATION = 8,   /* another exception, such as one of a callback */
  MULCIBER_ERROR_HOST MULCIBER_DEPRECATED("use MULCIBER_ERROR_APPLICATION") = 8,
  MULCIBER_STATUS_MAX = 0x7fffffff
} MulciberStatus;

typedef struct MulciberContext MulciberContext;         /* holds the last message */
typedef struct MulciberDevice MulciberDevice;           /* a device, borrowed or opened */
typedef struct MulciberModel MulciberModel;             /* a model's files, open */
typedef struct MulciberTranslator MulciberTranslator;   /* a translation model on a device */
typedef struct MulciberGenerator MulciberGenerator;     /* a language model on a device */
typedef struct MulciberTextEncoder MulciberTextEncoder; /* a text embedding model on a device */
typedef struct MulciberTask MulciberTask; /* computes a translation, answer, embedding or maps */
typedef struct MulciberGrammar MulciberGrammar; /* for guided decoding, mulciber/c/grammar.h */

/* A buffer of the application, mulciber/c/resources.h */
typedef struct MulciberApplicationBuffer MulciberApplicationBuffer;

/* Version of the linked library, in the form "1.2.3"; MULCIBER_VERSION is that of the headers. */
MULCIBER_API const char* mulciber_version(void);

/* Whether the linked library has a function, such as "mulciber_discard", for programs that run with
 * libraries older than their headers; or a part that a build may leave out: "audio" (sound files),
 * "images" (PNG, JPEG or WebP files), "self-test". */
MULCIBER_API MulciberBool mulciber_supports(const char* name);
MULCIBER_API MulciberStatus mulciber_create_context(MulciberContext** context);
MULCIBER_API void mulciber_destroy_context(MulciberContext* context);

/* Message of the last failed call with this context; "" if none failed. Valid until the next call
 * with the context. */
MULCIBER_API const char* mulciber_message(const MulciberContext* context);

#ifdef __cplusplus
}
#endif

#endif
