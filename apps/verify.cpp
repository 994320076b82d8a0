// `mulciber verify`: compares a model's expected results with what the device computes.
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "apps/cli/command.h"
#include "apps/cli/fast_activations.h"
#include "apps/cli/standard_error.h"
#include "models/loading/open_files.h"
#include "models/loading/verify.h"

namespace mulciber::apps {
namespace {

struct VerifyArguments {
  CommonOptions common;
  std::string model, expected;
  double tolerance = -1;  // negative: each tensor's own
  bool half_weights = false, half_activations = false, fast_activations = false;
};

const char* name_of(VerifyResult::Status status) {
  switch (status) {
    case VerifyResult::Status::kPass: return "pass";
    case VerifyResult::Status::kFail: return "FAIL";
    case VerifyResult::Status::kNotCompared: return "not compared";
  }
  return "?";
}

nlohmann::json json_of(const VerifyResult& result) {
  nlohmann::json object = {{"case", result.case_name},      {"kind", result.kind},
                           {"tensor", result.tensor},       {"status", name_of(result.status)},
                           {"tolerance", result.tolerance}, {"detail", result.detail}};
  // JSON has no infinity.
  if (std::isfinite(result.error)) object["error"] = result.error;
  return object;
}

void print_json(const VerifyReport& report, const Device& device) {
  nlohmann::json document = {{"device", device.capabilities().name},
                             {"passed", report.count(VerifyResult::Status::kPass)},
                             {"failed", report.count(VerifyResult::Status::kFail)},
                             {"not_compared", report.count(VerifyResult::Status::kNotCompared)},
                             {"results", nlohmann::json::array()}};
  for (const VerifyResult& result : report.results) document["results"].push_back(json_of(result));
  fmt::print("{}\n", document.dump(2));
}

void print_table(const VerifyReport& report) {
  fmt::print("{:<16} {:<28} {:>12} {:>12}  {}\n", "case", "tensor", "error", "tolerance", "");
  for (const VerifyResult& result : report.results) {
    const bool compared = result.status != VerifyResult::Status::kNotCompared;
    const std::string error = compared ? fmt::format("{:.3g}", result.error) : "-";
    // The position of a passing tensor's largest difference is for --json.
    const bool explain = result.status != VerifyResult::Status::kPass && !result.detail.empty();
    fmt::print("{:<16} {:<28} {:>12} {:>12.3g}  {}{}{}\n", result.case_name, result.tensor, error,
               result.tolerance, name_of(result.status), explain ? ": " : "",
               explain ? result.detail : "");
  }
  fmt::print("{} passed, {} failed, {} not compared\n", report.count(VerifyResult::Status::kPass),
             report.count(VerifyResult::Status::kFail),
             report.count(VerifyResult::Status::kNotCompared));
}

int run(const VerifyArguments& options) {
  const std::unique_ptr<Device> device = open_device(options.common);
  const OpenModel opened = open_files(options.model);
  const std::unique_ptr<Model> model =
      load_model(*device, opened,
                 {.matrices = options.half_weights ? MatrixStorage::kF16 : MatrixStorage::kAsInFile,
                  .activations = options.half_activations ? DataType::kF16 : DataType::kF32,
                  .fast_activations = options.fast_activations});
  VerifyOptions verify_options;
  if (options.tolerance >= 0) verify_options.tolerance = options.tolerance;
  struct Interrupted {};
  verify_options.on_case = [&](const std::string& name, size_t index, size_t total) {
    if (interrupted()) throw Interrupted();
    if (options.common.verbose) tell("case {} of {}: {}\n", index + 1, total, name);
  };
  VerifyReport report;
  try {
    report = verify(*model, options.expected, verify_options);
  } catch (const Interrupted&) {
    return finish(*device, options.common, kInterrupted);
  }
  if (options.common.json) {
    print_json(report, *device);
  } else {
    print_table(report);
  }
  return finish(*device, options.common, report.exit_code());
}

}  // namespace

void add_verify(Command& app, int& code) {
  Command command = app.add_subcommand(
      "verify", "Run a model's reference cases and compare every expected tensor");
  const auto options = std::make_shared<VerifyArguments>();
  command.add_option("-m,--model", options->model, "model folder").required();
  command
      .add_option("expected", options->expected,
                  "expected.safetensors; the cases are listed in the .json beside it")
      .required();
  command
      .add_option("--tolerance", options->tolerance,
                  "largest absolute difference allowed in real tensors (default: "
                  "max(1e-4, 20 x the case's own 32-bit difference), scores 1e-3)")
      .not_negative();
  command.add_flag("--half-weights", options->half_weights, "keep matrices in 16 bits");
  command.add_flag("--half-activations", options->half_activations, "keep activations in 16 bits");
  add_fast_activations_option(command, options->fast_activations);
  add_common_options(command, options->common);
  command.footer(
      "Exit code: 0 all within tolerance, 1 one is over, 2 bad input, 3 nothing could be "
      "compared, 4 no device or a device failure.\n"
      "Example: mulciber verify -m tests/data/marian tests/data/marian/expected.safetensors");
  command.callback([options, &code] { code = run(*options); });
}

}  // namespace mulciber::apps
