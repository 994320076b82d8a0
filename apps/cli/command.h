// What every subcommand of `mulciber` shares: options, exit codes, output.
#pragma once

#include <memory>
#include <string>

#include "apps/cli/options.h"
#include "runtime/device.h"

namespace mulciber::apps {

/// Exit codes, as --help documents them.
enum ExitCode : int {
  kSuccess = 0,
  kOverTolerance = 1,    // a comparison or a case failed
  kBadInput = 2,         // options, files or text that cannot be used
  kNothingCompared = 3,  // verify found nothing to compare, conform selected no case
  kDeviceFailed = 4,     // no device, out of device memory, device lost, no kernel that it can run
  kInterrupted = 130,    // SIGINT
};

/// --device, --limits, --validate, --profile, --json and --verbose of a subcommand.
struct CommonOptions {
  DeviceOptions device_options;
  std::string profile_file;
  bool json = false;
  bool verbose = false;
};

/// The message of an error for users of the command: a setting has the name of its option.
std::string message_of(const Error& error, const CommandLine& line);

/// Once the subcommand is parsed, takes options that were not given from the environment.
void take_environment(Command& command, CommonOptions& options);
/// Adds the common options to a subcommand, and takes the environment.
void add_common_options(Command& command, CommonOptions& options);

/// Opens the device; with --verbose names it on standard error. Rows that were not yet tested on
/// this driver version are tested first, on a device of their own, until `self_test_seconds` are
/// over; MULCIBER_SELF_TEST=0 skips the tests.
std::unique_ptr<Device> open_device(const CommonOptions& options, double self_test_seconds = 2);
/// A time for commands that measure: a row without a verdict would be skipped, and the next run
/// choose otherwise.
constexpr double kTestEveryRow = 1e9;

/// Called after the work: writes the profile when one was asked for (a trace to the file, a table
/// to standard error) and reports validation messages on standard error. Returns `code`, or
/// kDeviceFailed when --validate found something.
int finish(Device& device, const CommonOptions& options, int code);

/// Throws ModelError when printed text cannot be written (a full disk, say). The command calls it
/// at its end; code that prints a line at a time calls it after each line.
void flush_output();

/// Set by SIGINT; long work checks it and ends cleanly.
bool interrupted();
/// Clears a SIGINT that has stopped something, so that the program goes on.
void clear_interrupt();

/// Each adds one subcommand; its callback stores the exit code in `code`.
void add_devices(Command& app, int& code);
void add_bench(Command& app, int& code);
void add_tune(Command& app, int& code);
void add_kernels(Command& app, int& code);
void add_verify(Command& app, int& code);
void add_inspect(Command& app, int& code);
void add_translate(Command& app, int& code);
void add_transcribe(Command& app, int& code);
void add_embed(Command& app, int& code);
void add_classify(Command& app, int& code);
void add_answer(Command& app, int& code);
void add_match(Command& app, int& code);
void add_read(Command& app, int& code);
void add_generate(Command& app, int& code);
void add_chat(Command& app, int& code);
void add_serve(Command& app, int& code);
void add_perplexity(Command& app, int& code);
void add_score(Command& app, int& code);
void add_tokenize(Command& app, int& code);
void add_conform(Command& app, int& code);
void add_pull(Command& app, int& code);
void add_heads(Command& app, int& code);

}  // namespace mulciber::apps
