// `mulciber bench -m` with a language model and a grammar.
#pragma once

#include "apps/bench/model.h"
#include "models/families/open_model.h"

namespace mulciber::apps {

/// Decodes `options.tokens` by `options.answer` and without it in turns, `options.repeats` times,
/// drawn at temperature 1, and prints what a step takes: seconds and processor time (medians), and
/// what the grammar took of it. Each answer is the first by its grammar: no mask is known before.
/// Throws as TextGenerator does.
int bench_grammar(const ModelBench& options, const OpenModel& opened);

}  // namespace mulciber::apps
