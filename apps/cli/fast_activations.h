// The option --fast-activations of commands that run language models.
#pragma once

#include "apps/cli/options.h"

namespace mulciber::apps {

inline void add_fast_activations_option(Command& command, bool& fast) {
  command.add_flag("--fast-activations", fast,
                   "quantize activations to 8 bits for products with quantized weights: less to "
                   "compute on devices with integer dot products, and less exact "
                   "(docs/internals/performance.md)");
}

}  // namespace mulciber::apps
