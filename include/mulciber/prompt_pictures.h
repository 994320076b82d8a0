// Deprecated: include mulciber/prompt_images.h.
#pragma once
#include "mulciber/prompt_images.h"
