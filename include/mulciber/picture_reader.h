// Deprecated: include mulciber/image_text_reader.h.
#pragma once
#include "mulciber/image_text_reader.h"
