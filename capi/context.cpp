// C functions for contexts, and the version.
#include "mulciber/c/context.h"

#include <algorithm>
#include <string_view>

#include "capi/handles.h"

namespace {

// In the order of their names; capi/CMakeLists.txt writes the list.
constexpr std::string_view kSupported[] = {
#include "supported.inc"
};

}  // namespace

const char* mulciber_version(void) { return MULCIBER_VERSION; }

MulciberBool mulciber_supports(const char* name) {
  return name && std::ranges::binary_search(kSupported, std::string_view(name));
}

MulciberStatus mulciber_create_context(MulciberContext** context) {
  if (!context) return MULCIBER_ERROR_SETTING;
  *context = new (std::nothrow) MulciberContext;
  return *context ? MULCIBER_OK : MULCIBER_ERROR_OUT_OF_MEMORY;
}

void mulciber_destroy_context(MulciberContext* context) { delete context; }

const char* mulciber_message(const MulciberContext* context) {
  return context ? context->message.c_str() : "no context was given";
}
