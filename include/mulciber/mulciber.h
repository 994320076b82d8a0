// The public interface of the library: every header of it.
#pragma once

#include "mulciber/attention.h"
#include "mulciber/batch_generator.h"
#include "mulciber/device.h"
#include "mulciber/error.h"
#include "mulciber/graph_attention.h"
#include "mulciber/image_encoder.h"
#include "mulciber/model_loader.h"
#include "mulciber/open_model.h"
#include "mulciber/picture.h"
#include "mulciber/picture_reader.h"
#include "mulciber/sampling.h"
#include "mulciber/text_encoder.h"
#include "mulciber/text_generator.h"
#include "mulciber/text_scores.h"
#include "mulciber/transcriber.h"
#include "mulciber/translator.h"
