/* Deprecated: include mulciber/mulciber_c_images.h. */
#include "mulciber/mulciber_c_images.h"
