// `mulciber bench -m`: a whole translation, beside the sum of its kernels.
#pragma once

#include <string>
#include <vector>

#include "apps/command.h"

namespace mulciber::apps {

struct ModelBench {
  CommonOptions common;
  std::string model;
  std::string file;      // sentences, one a line; "" : eight of our own
  uint32_t beams = 0;    // 0: the model's own
  uint32_t repeats = 5;
};

/// Translates the sentences `repeats` times, once more under the profiler, and prints per kernel row: time,
/// achieved rates, floor, ratio and share; then tokens per second, the wall time (median) and what it is
/// of the sum of kernel times. Throws as Translator does.
int bench_model(const ModelBench& options);

}  // namespace mulciber::apps
