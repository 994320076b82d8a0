/* Version of these headers, for C and C++. mulciber_version() gives that of the linked library. */
#ifndef MULCIBER_VERSION_H
#define MULCIBER_VERSION_H

#define MULCIBER_VERSION_MAJOR 0
#define MULCIBER_VERSION_MINOR 2
#define MULCIBER_VERSION_PATCH 0
#define MULCIBER_VERSION "0.2.0"

/* Whether the headers have this version or a newer one. */
#define MULCIBER_VERSION_AT_LEAST(major, minor, patch) \
  (MULCIBER_VERSION_MAJOR > (major) ||                 \
   (MULCIBER_VERSION_MAJOR == (major) &&               \
    (MULCIBER_VERSION_MINOR > (minor) ||               \
     (MULCIBER_VERSION_MINOR == (minor) && MULCIBER_VERSION_PATCH >= (patch)))))

#endif
