// C functions for contexts, and the version.
#include "mulciber/c/context.h"

#include "capi/handles.h"

#ifndef MULCIBER_VERSION
#error "capi/CMakeLists.txt defines MULCIBER_VERSION"
#endif

const char* mulciber_version(void) { return MULCIBER_VERSION; }

MulciberStatus mulciber_create_context(MulciberContext** context) {
  if (!context) return MULCIBER_ERROR_SETTING;
  *context = new (std::nothrow) MulciberContext;
  return *context ? MULCIBER_OK : MULCIBER_ERROR_OUT_OF_MEMORY;
}

void mulciber_destroy_context(MulciberContext* context) { delete context; }

const char* mulciber_message(const MulciberContext* context) {
  return context ? context->message.c_str() : "no context was given";
}
