// Deprecated: include mulciber/image_task.h.
#pragma once
#include "mulciber/image_task.h"
