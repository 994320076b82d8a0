// Marks what the shared library exports; everything else in it is hidden.
#pragma once

#if defined(__GNUC__)
#define MULCIBER_API __attribute__((visibility("default")))
#else
#define MULCIBER_API
#endif

// Marks a name that the next version drops.
#if defined(__GNUC__)
#define MULCIBER_DEPRECATED(message) __attribute__((deprecated(message)))
#else
#define MULCIBER_DEPRECATED(message)
#endif
