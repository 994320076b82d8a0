// `mulciber bench -m`: the time of a whole translation, beside the sum of its kernels.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "apps/cli/command.h"
#include "apps/cli/grammar_options.h"
#include "apps/cli/peaks.h"
#include "mulciber/text_generator.h"

namespace mulciber::apps {

struct ModelBench {
  CommonOptions common;
  std::string model;
  std::string file;                   // sentences, one a line; "" : eight bundled ones
  uint32_t beams = 0;                 // 0: the model's own
  uint32_t prompt = 64, tokens = 16;  // for a language model: prompt and decoded tokens
  bool half_activations = false, fast_activations = false;
  KeyValueStorage key_values = KeyValueStorage::kF16;
  GrammarOptions answer;  // for a language model: the grammar whose cost is measured
  uint32_t repeats = 5;
};

double median(std::vector<double> values);
/// Per kernel row: dispatches, seconds, achieved rates, floor, floor over achieved time, and share
/// of the time of all rows.
nlohmann::json kernel_rows(const Profiler& profiler, const Peaks& peaks);
/// Prints these numbers as a table, and the device's name and driver.
void print_kernels(Device& device, const Peaks& peaks);

/// Translates the sentences `repeats` times, once more under the profiler, and prints per kernel
/// row: time, achieved rates, floor, ratio and share; then tokens per second, the wall time
/// (median) and its ratio to the sum of kernel times. Throws as Translator does. A language model
/// goes to bench_decoder(), a text encoder to bench_encoder().
int bench_model(const ModelBench& options);

}  // namespace mulciber::apps
