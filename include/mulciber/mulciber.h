// The public C++ interface, without the headers that need Vulkan's: mulciber/embedding.h and
// mulciber/image_task.h, for applications that lend their own VkDevice.
#pragma once

#include "mulciber/attention.h"
#include "mulciber/batch_generator.h"
#include "mulciber/batch_translator.h"
#include "mulciber/device.h"
#include "mulciber/error.h"
#include "mulciber/grammar.h"
#include "mulciber/graph_attention.h"
#include "mulciber/image.h"
#include "mulciber/image_encoder.h"
#include "mulciber/image_text_reader.h"
#include "mulciber/model_loader.h"
#include "mulciber/open_model.h"
#include "mulciber/prompt_images.h"
#include "mulciber/sampling.h"
#include "mulciber/text_encoder.h"
#include "mulciber/text_generator.h"
#include "mulciber/text_scores.h"
#include "mulciber/transcriber.h"
#include "mulciber/translator.h"
