// Deprecated: include mulciber/application_device.h.
#pragma once
#include "mulciber/application_device.h"
