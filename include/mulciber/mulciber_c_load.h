/* Deprecated: include mulciber/mulciber_c.h. */
#include "mulciber/mulciber_c.h"
