#include "apps/cli/command.h"

#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "apps/cli/peaks.h"
#include "apps/cli/progress.h"
#include "apps/cli/standard_error.h"
#include "conformance/self_test.h"
#include "runtime/profiler.h"
#include "runtime/queue_priority.h"

namespace mulciber::apps {
namespace {

volatile std::sig_atomic_t g_interrupted = 0;

void on_interrupt(int) {
  // A second SIGINT ends the program at once, as users expect of a stuck program.
  if (g_interrupted) std::_Exit(kInterrupted);
  g_interrupted = 1;
}

}  // namespace

bool interrupted() {
  static const bool installed = [] {
    std::signal(SIGINT, on_interrupt);
    return true;
  }();
  (void)installed;
  return g_interrupted != 0;
}

void flush_output() {
  if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return;
  throw ModelError("standard output", fmt::format("cannot be written ({})", std::strerror(errno)),
                   "make room, or print elsewhere");
}

void clear_interrupt() { g_interrupted = 0; }

std::string message_of(const Error& error, const CommandLine& line) {
  const bool setting = dynamic_cast<const SettingError*>(&error) != nullptr ||
                       dynamic_cast<const DeviceError*>(&error) != nullptr;
  if (setting && line.chosen_has("--" + error.where())) return std::string("--") + error.what();
  return error.what();
}

void take_environment(Command& command, CommonOptions& options) {
  command.once_parsed([&options] {
    options.device_options = options_from_environment(std::move(options.device_options));
  });
}

void add_common_options(Command& command, CommonOptions& options) {
  take_environment(command, options);
  command.add_option("--device", options.device_options.device,
                     "device by index or by part of its name (see `mulciber devices`)");
  command.add_option("--limits", options.device_options.limits,
                     "take capabilities away, e.g. no-fp16,shared=16384,storage=1M,android-2021");
  command.add_choice(
      "--queue-priority",
      {{"low", static_cast<int>(QueuePriority::kLow)},
       {"high", static_cast<int>(QueuePriority::kHigh)},
       {"realtime", static_cast<int>(QueuePriority::kRealtime)}},
      [&options](int chosen) {
        options.device_options.queue_priority = static_cast<QueuePriority>(chosen);
      },
      "low gives way to other programs' work on the device, the others go before it, where the "
      "driver grants that (see --verbose)");
  command.add_flag("--validate", options.device_options.validate,
                   "run under the Khronos validation layer, with synchronization validation");
  command
      .add_option(
          "--profile", options.profile_file,
          "write device times per node to FILE, for Perfetto; a table goes to standard error")
      .type_name("FILE");
  command.add_flag("--json", options.json, "machine-readable output");
  command.add_flag("-v,--verbose", options.verbose,
                   "say what is used, and the memory predicted and taken");
}

namespace {

// Tests rows that were not tested on this driver yet, until so many seconds are over; the others
// are left to the next start. Returns whether any row was tested.
bool test_driver(const DeviceOptions& device_options, const Capabilities& device, double seconds,
                 bool verbose) {
  const char* wanted = std::getenv("MULCIBER_SELF_TEST");
  if (device_options.ignore_verdicts || (wanted && std::string(wanted) == "0")) return false;
  const size_t untested = conformance::untested_rows(device).size();
  if (untested == 0) return false;
  conformance::SelfTestOptions options{.seconds = seconds};
  options.cancelled = interrupted;
  Progress progress("testing the driver, once per version", untested);
  options.progress = [&](const Kernel&, size_t done, size_t) { progress.update(done); };
  const conformance::SelfTestReport report = conformance::self_test(device_options, options);
  progress.finish();
  for (const auto& [row, reason] : report.failures) {
    tell("warning: {} fails its self-test on {} and will not be used: {}\n", row, device.name,
         reason);
  }
  if (verbose && report.kept) {
    tell("self-test: {} rows passed, {} failed, {} left for the next start, {:.1f} s\n",
         report.passed, report.failures.size(), report.untested, report.seconds);
  }
  return report.kept;
}

}  // namespace

std::unique_ptr<Device> open_device(const CommonOptions& options, double self_test_seconds) {
  interrupted();  // installs the handler
  DeviceOptions device_options = options.device_options;
  device_options.profile = !options.profile_file.empty();
  std::unique_ptr<Device> device = Device::open(device_options);
  if (test_driver(device_options, device->capabilities(), self_test_seconds, options.verbose)) {
    device.reset();
    device = Device::open(device_options);
  }
  if (options.verbose) {
    const Capabilities& c = device->capabilities();
    tell("device: {} ({}, {})\n", c.name, c.driver_name, c.driver_info);
    if (device_options.queue_priority != QueuePriority::kDefault)
      tell("queue priority: {} was asked for, {} granted\n", name_of(device_options.queue_priority),
           name_of(device->options().queue_priority));
  }
  return device;
}

int finish(Device& device, const CommonOptions& options, int code) {
  if (Profiler* profiler = device.profiler()) {
    const std::string trace = profiler->trace_json(device.capabilities().name);
    const std::vector<ProfileEvent> events = profiler->events();
    const Peaks peaks = measure_peaks(device);  // adds events of its own
    profiler->restore(events);
    tell("{}", profiler->table(peaks.bytes_per_second, peaks.flops_per_second));
    std::ofstream out(options.profile_file, std::ios::binary);
    out << trace;
    if (!out.flush()) {
      throw ModelError(options.profile_file, "could not write the profile",
                       "choose a folder that can be written to");
    }
  }
  auto messages = device.validation_messages();
  for (const std::string& message : messages) tell("validation: {}\n", message);
  if (!messages.empty() && code == kSuccess) return kDeviceFailed;
  return code;
}

}  // namespace mulciber::apps
