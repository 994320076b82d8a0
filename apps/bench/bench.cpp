// `mulciber bench`: the time of each kernel row, beside the least time that the device could take.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "apps/bench/model.h"
#include "apps/cli/command.h"
#include "apps/cli/fast_activations.h"
#include "apps/cli/key_values.h"
#include "apps/cli/peaks.h"
#include "apps/cli/row_selection.h"
#include "apps/cli/standard_error.h"
#include "conformance/time_case.h"
#include "runtime/kernel.h"

namespace mulciber::apps {
namespace {

using conformance::OpCase;
using conformance::OpCases;
using conformance::Timing;

struct BenchOptions : CommonOptions {
  ModelBench model;
  RowSelection rows;
  bool kinds = false;
  double seconds = 0.3;
};

struct Result {
  const Kernel* row;
  KernelTypes types;
  std::vector<uint64_t> shape;
  std::string shape_format;
  Timing timing;
  bool chosen = false;
  std::string kind = {};  // set with --kinds

  double seconds() const { return timing.median_ms / 1000; }
  double floor_seconds(const Peaks& peaks) const {
    return std::max(static_cast<double>(timing.work.bytes) / peaks.bytes_per_second,
                    static_cast<double>(timing.work.flops) / peaks.flops_per_second);
  }
};

void progress(size_t done, size_t total, const char* id) {
  if (isatty(STDERR_FILENO)) tell("\r\033[K{}/{} {}", done, total, id);
}

std::vector<Result> measure(Device& device, const std::vector<const Kernel*>& rows,
                            const BenchOptions& options) {
  std::vector<Result> results;
  for (size_t i = 0; i < rows.size() && !interrupted(); ++i) {
    progress(i, rows.size(), rows[i]->id);
    const std::string shape_format = conformance::op_cases(rows[i]->op).shape_format();
    for_each_case(
        options.rows, *rows[i],
        [&](const KernelTypes& types, const std::vector<uint64_t>& shape, const OpCase& op_case) {
          Result result{rows[i], types, shape, shape_format,
                        conformance::time_case(device, op_case, *rows[i], options.seconds)};
          result.chosen =
              conformance::chosen_row(device.capabilities(), op_case, rows[i]->op) == rows[i];
          results.push_back(std::move(result));
        });
  }
  if (isatty(STDERR_FILENO)) tell("\r\033[K");
  // Rows of one shape stand side by side, shape after shape.
  std::stable_sort(results.begin(), results.end(), [](const Result& a, const Result& b) {
    auto key = [](const Result& r) {
      return std::tuple(r.row->op, r.shape, r.types.activation, r.types.weight);
    };
    return key(a) < key(b);
  });
  return results;
}

/// Measures each kind of an op's problem with the row that selection takes for it.
std::vector<Result> measure_kinds(Device& device, const std::vector<const Kernel*>& rows,
                                  const BenchOptions& options) {
  std::vector<Result> results;
  for (size_t i = 0; i < rows.size(); ++i) {
    progress(i, rows.size(), rows[i]->id);
    const OpCases& cases = conformance::op_cases(rows[i]->op);
    std::vector<std::vector<uint64_t>> shapes = shapes_of(options.rows);
    if (shapes.empty()) shapes = {cases.bench_shapes().front()};
    for (const KernelTypes& types : selected_types(options.rows, *rows[i])) {
      for (const std::vector<uint64_t>& shape : shapes) {
        for (const OpCase& kind : cases.kinds(shape, types)) {
          if (interrupted()) return results;
          if (conformance::chosen_row(device.capabilities(), kind, rows[i]->op) != rows[i])
            continue;
          results.push_back({rows[i], types, shape, cases.shape_format(),
                             conformance::time_case(device, kind, *rows[i], options.seconds), true,
                             kind.name});
        }
      }
    }
  }
  if (isatty(STDERR_FILENO)) tell("\r\033[K");
  return results;
}

/// The row's id, with its types where it serves several.
std::string row_and_type(const Result& r) {
  const std::string row = r.types == r.row->types
                              ? r.row->id
                              : fmt::format("{} {}", r.row->id, name_of(r.types.weight));
  return r.kind.empty() ? row : fmt::format("{:<16} {}", r.kind, row);
}

void print_table(const Device& device, const Peaks& peaks, const std::vector<Result>& results) {
  const Capabilities& c = device.capabilities();
  fmt::print("{} ({} {})\n", c.name, c.driver_name, c.driver_info);
  fmt::print("peaks measured here: {:.1f} GB/s, {:.1f} GFLOP/s\n", peaks.bytes_per_second * 1e-9,
             peaks.flops_per_second * 1e-9);
  const Result* previous = nullptr;
  for (const Result& r : results) {
    if (!previous || previous->row->op != r.row->op || previous->shape != r.shape) {
      fmt::print("\n{} {} = {}\n", name_of(r.row->op), r.shape_format, fmt::join(r.shape, ","));
      fmt::print("  {:<50} {:>10} {:>8} {:>9} {:>8} {:>10} {:>7}\n", "row", "median ms", "spread",
                 "GFLOP/s", "GB/s", "floor ms", "ratio");
    }
    fmt::print("{} {:<50} {:>10.4f} {:>7.0f}% {:>9.2f} {:>8.2f} {:>10.4f} {:>7.3f}\n",
               r.chosen ? '*' : ' ', row_and_type(r), r.timing.median_ms,
               100 * r.timing.spread_ms / std::max(1e-9, r.timing.median_ms),
               rate(r.timing.work.flops, r.timing) * 1e-9,
               rate(r.timing.work.bytes, r.timing) * 1e-9, r.floor_seconds(peaks) * 1000,
               r.floor_seconds(peaks) / std::max(1e-12, r.seconds()));
    previous = &r;
  }
  fmt::print("\n* is the row that selection takes for the shape and types.\n");
}

nlohmann::json to_json(const Device& device, const Peaks& peaks,
                       const std::vector<Result>& results) {
  const Capabilities& c = device.capabilities();
  nlohmann::json list = nlohmann::json::array();
  for (const Result& r : results) {
    list.push_back({{"op", name_of(r.row->op)},
                    {"row", r.row->id},
                    {"shape", r.shape},
                    {"kind", r.kind},
                    {"activation", name_of(r.types.activation)},
                    {"weight", name_of(r.types.weight)},
                    {"median_ms", r.timing.median_ms},
                    {"spread_ms", r.timing.spread_ms},
                    {"dispatches", r.timing.dispatches},
                    {"bytes", r.timing.work.bytes},
                    {"flops", r.timing.work.flops},
                    {"gflops", rate(r.timing.work.flops, r.timing) * 1e-9},
                    {"gbytes_per_second", rate(r.timing.work.bytes, r.timing) * 1e-9},
                    {"floor_ms", r.floor_seconds(peaks) * 1000},
                    {"ratio", r.floor_seconds(peaks) / std::max(1e-12, r.seconds())},
                    {"chosen", r.chosen}});
  }
  return {{"device", c.name},
          {"driver", c.driver_name},
          {"driver_info", c.driver_info},
          {"peak_gbytes_per_second", peaks.bytes_per_second * 1e-9},
          {"peak_gflops", peaks.flops_per_second * 1e-9},
          {"results", list}};
}

int run_bench(const BenchOptions& options) {
  std::unique_ptr<Device> device = open_device(options, kTestEveryRow);
  const std::vector<const Kernel*> rows = selected_rows(options.rows, device->capabilities());
  if (rows.empty()) return finish(*device, options, kBadInput);
  Peaks peaks = measure_peaks(*device);
  std::vector<Result> results =
      options.kinds ? measure_kinds(*device, rows, options) : measure(*device, rows, options);
  if (options.kinds && results.empty() && !interrupted()) {
    tell("mulciber: nothing that matches \"{}\" comes in kinds; attention does\n",
         options.rows.kernel);
    return finish(*device, options, kBadInput);
  }
  for (const Result& r : results) {
    peaks.flops_per_second = std::max(peaks.flops_per_second, rate(r.timing.work.flops, r.timing));
  }
  if (options.json) {
    fmt::print("{}\n", to_json(*device, peaks, results).dump(2));
  } else {
    print_table(*device, peaks, results);
  }
  return finish(*device, options, interrupted() ? kInterrupted : kSuccess);
}

}  // namespace

void add_bench(Command& app, int& code) {
  auto options = std::make_shared<BenchOptions>();
  Command command = app.add_subcommand(
      "bench", "Achieved rate of each kernel row, beside its floor on this device");
  command
      .add_option(
          "-m,--model", options->model.model,
          "measure a translation, a language model or a text encoder instead of kernel rows")
      .type_name("FILE|DIR");
  command
      .add_option("-f,--file", options->model.file,
                  "with -m: sentences, one a line (default: eight of our own)")
      .type_name("FILE");
  command.add_option("-b,--beam", options->model.beams, "with -m: beams (default: the model's own)")
      .range(1, 32);
  command.add_option("-r,--repeats", options->model.repeats, "with -m: runs to take the median of")
      .range(1, 1000);
  command
      .add_option("-p,--prompt", options->model.prompt, "with a language model: tokens to take in")
      .range(1, 1000000);
  command
      .add_option("-n,--tokens", options->model.tokens, "with a language model: tokens to decode")
      .range(1, 1000000);
  command.add_flag("--half-activations", options->model.half_activations,
                   "with a language model or a text encoder: activations in 16 bits");
  add_grammar_options(command, options->model.answer);
  add_fast_activations_option(command, options->model.fast_activations);
  add_key_value_option(command, options->model.key_values);
  add_row_options(command, options->rows, "measure",
                  "of rows for several types of weights, those to measure: a glob");
  command.add_flag(
      "--kinds", options->kinds,
      "every kind of attention (scores, masks, windows, patterns) by the row that serves it");
  command.add_option("--seconds", options->seconds, "time to spend on each row and shape")
      .positive();
  add_common_options(command, *options);
  command.footer(
      "Every row that runs here is measured on every shape of its op that it can serve: warmed up, "
      "then the\n"
      "median of many replays. The floor is the larger of bytes (inputs read once, outputs written "
      "once) over\n"
      "the bandwidth of adding two tensors of 64 MiB at most, and operations over the best matrix "
      "product of this run.\n"
      "The ratio is floor over achieved time; shapes that stay in a cache can pass 1.\n"
      "With --json-schema, --regex or --grammar, a language model decodes alternately with it and "
      "without, and\n"
      "what a step takes is printed of both.\n\n"
      "Example: mulciber bench --kernel 'matmul*' --shape 64,2048,768");
  command.callback([options, &code] {
    options->model.common = *options;
    code = options->model.model.empty() ? run_bench(*options) : bench_model(options->model);
  });
}

}  // namespace mulciber::apps
