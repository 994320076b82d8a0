/* Mulciber for C: everything that takes no Vulkan type, for programs and bindings that bring no
 * device of their own. No Vulkan header is needed. mulciber/mulciber_c.h has the rules. C11. */
#ifndef MULCIBER_C_STANDALONE_H
#define MULCIBER_C_STANDALONE_H

#include "mulciber/c/adapter.h"
#include "mulciber/c/attention.h"
#include "mulciber/c/batch_generator.h"
#include "mulciber/c/batch_translator.h"
#include "mulciber/c/cancel.h"
#include "mulciber/c/classifier.h"
#include "mulciber/c/completion.h"
#include "mulciber/c/context.h"
#include "mulciber/c/device.h"
#include "mulciber/c/encoder_statistics.h"
#include "mulciber/c/generator.h"
#include "mulciber/c/grammar.h"
#include "mulciber/c/graph_attention.h"
#include "mulciber/c/id_sequence.h"
#include "mulciber/c/image.h"
#include "mulciber/c/image_classifier.h"
#include "mulciber/c/image_encoder.h"
#include "mulciber/c/image_text_matcher.h"
#include "mulciber/c/image_text_reader.h"
#include "mulciber/c/loader.h"
#include "mulciber/c/model.h"
#include "mulciber/c/passage_reader.h"
#include "mulciber/c/prompt.h"
#include "mulciber/c/result.h"
#include "mulciber/c/scores.h"
#include "mulciber/c/task.h"
#include "mulciber/c/text_encoder.h"
#include "mulciber/c/transcriber.h"
#include "mulciber/c/translator.h"
#include "mulciber/c/warmup.h"

#endif
