// `mulciber bench -m` with a language model and a grammar.
#pragma once

#include "apps/bench/model.h"
#include "models/families/open_model.h"

namespace mulciber::apps {

/// Decodes `options.tokens` with and without `options.answer`, interleaved, `options.repeats`
/// times, sampled at temperature 1. Prints what a step takes: seconds and processor time (medians),
/// and the grammar's share of it. Each answer is the first by its grammar, so that no mask is
/// cached before. Throws as TextGenerator does.
int bench_grammar(const ModelBench& options, const OpenModel& opened);

}  // namespace mulciber::apps
