// `mulciber bench -m` with a decoder-only language model.
#pragma once

#include "apps/bench/model.h"
#include "models/families/open_model.h"

namespace mulciber::apps {

/// Prefills `options.prompt` tokens and decodes `options.tokens`, `options.repeats` times, and once
/// more under the profiler. Prints tokens per second (medians) and per kernel row: time, achieved
/// rates, floor, ratio and share of the decode steps. Throws as TextGenerator does.
int bench_decoder(const ModelBench& options, const OpenModel& opened);

}  // namespace mulciber::apps
