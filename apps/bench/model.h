// `mulciber bench -m`: a whole translation, beside the sum of its kernels.
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
  std::string file;                   // sentences, one a line; "" : eight of our own
  uint32_t beams = 0;                 // 0: the model's own
  uint32_t prompt = 64, tokens = 16;  // of a language model: taken in, and decoded
  bool half_activations = false, fast_activations = false;
  KeyValueStorage key_values = KeyValueStorage::kF16;
  GrammarOptions answer;  // of a language model: what it costs to keep to this
  uint32_t repeats = 5;
};

double median(std::vector<double> values);
/// Per kernel row: dispatches, seconds, achieved rates, floor, floor over achieved time, and share
/// of all rows.
nlohmann::json kernel_rows(const Profiler& profiler, const Peaks& peaks);
/// Prints the same as a table, and the device's name and driver.
void print_kernels(Device& device, const Peaks& peaks);

/// Translates the sentences `repeats` times, once more under the profiler, and prints per kernel
/// row: time, achieved rates, floor, ratio and share; then tokens per second, the wall time
/// (median) and what it is of the sum of kernel times. Throws as Translator does. A language model
/// goes to bench_decoder(), a text encoder to bench_encoder().
int bench_model(const ModelBench& options);

}  // namespace mulciber::apps
