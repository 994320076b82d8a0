// Deprecated: include mulciber/image.h.
#pragma once
#include "mulciber/image.h"
