/* Mulciber for C: LoRA adapters. C11. */
#ifndef MULCIBER_C_ADAPTER_H
#define MULCIBER_C_ADAPTER_H

#include "mulciber/c/context.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A LoRA adapter, see AdapterFile in mulciber/load_options.h. */
typedef struct MulciberAdapter {
  uint32_t size;
  float scale;      /* 0: the adapter is off */
  const char* path; /* folder or file; NULL for mulciber_use_adapters() */
  const char* name; /* NULL: the folder's name, or the file's without extension */
} MulciberAdapter;

/* Selects adapters by name for generations begun afterwards; adapters that are not named are off.
 * Before the first call each adapter has the scale that it was loaded with. */
MULCIBER_API MulciberStatus mulciber_use_adapters(MulciberContext* context,
                                                  MulciberGenerator* generator, uint32_t count,
                                                  const MulciberAdapter* adapters);

#ifdef __cplusplus
}
#endif

#endif
