// The public interface of the library: every header of it.
#pragma once

#include "mulciber/attention.h"
#include "mulciber/device.h"
#include "mulciber/error.h"
#include "mulciber/open_model.h"
#include "mulciber/sampling.h"
#include "mulciber/text_encoder.h"
#include "mulciber/text_generator.h"
#include "mulciber/translator.h"
