// The parts of `mulciber conform`: options, the parent that keeps the record, the children that run
// cases, and the display during a run.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/cli/command.h"
#include "conformance/records/baseline.h"
#include "conformance/records/record.h"
#include "conformance/records/waivers.h"
#include "conformance/select.h"
#include "conformance/suite.h"

namespace mulciber::apps {

/// A deliberate fault in the cases that a glob names.
struct Injection {
  conformance::Fault fault = conformance::Fault::kNone;
  bool beside_others = false;  // only after another case in the same child
  std::string cases;
};
/// Parses "crash:GLOB". Throws ModelError naming the kinds.
Injection parse_injection(const std::string& text);

/// The settings of a child; the parent sends them as one line of JSON.
struct ChildSettings {
  std::string device, limits, cache_folder;
  bool validate = false;
  uint64_t seed = 0;
  uint32_t repeats = 20;
  conformance::Shake shake = conformance::Shake::kNone;
  std::vector<std::string> injections;
  std::vector<std::string> vectors, malformed;  // files that add cases
};

struct ConformOptions : CommonOptions {
  ChildSettings child;
  conformance::SelectionRule rule;
  bool list = false, resume = false, shake = false, no_shake = false;
  std::string caselist, fraction, output, baseline, waivers;
  std::string html, junit, compare, report, repro, findings;
  std::vector<std::string> matrix;
  double timeout = 60;  // seconds
  size_t jobs = 0, batch = 200;
};

/// All known cases: the suite's, and those of outside files that the settings name. Parent and
/// children call it with the same settings.
std::vector<const conformance::SuiteCase*> list_cases(const ChildSettings& settings);

struct ConformRun {
  conformance::RunRecord record;  // cases in the order of selection
  double seconds = 0;
  std::string aborted;  // why the run could not continue (no device, a wrong --limits), or ""
  int aborted_code = kDeviceFailed;
  std::vector<std::string> unused_waivers;
};

/// Runs the cases in child processes, writes each result to `options.output` as it comes, and with
/// `options.resume` continues behind these results. Stops early when interrupted() is true; then
/// record.complete is false. Throws ModelError for files that cannot be used.
ConformRun run_conform(const ConformOptions& options,
                       const std::vector<const conformance::SuiteCase*>& cases);

/// Runs a child: reads settings and names from standard input, writes results to
/// ChildProcess::kResultDescriptor.
int run_conform_worker();

/// Print on standard output: the table of a run, the differences to a baseline, and both as JSON.
void print_summary(const ConformRun& run);
void print_changes(const std::vector<conformance::Change>& changed);
void print_summary_json(const ConformRun& run, const std::vector<conformance::Change>& changed,
                        int code);

/// Throws ModelError when --html, --junit and --compare cannot be done.
void check_reports(const ConformOptions& options);
/// Writes the files of --html and --junit.
void write_reports(const conformance::RunRecord& run, const ConformOptions& options);
/// --report prints the summary of a file, --matrix a table of several. Both need no device, and
/// return the exit code.
int report_file(const ConformOptions& options);
int print_matrix(const ConformOptions& options);
/// --repro: writes the case as a folder, with its result.
int make_repro(const ConformOptions& options,
               const std::vector<const conformance::SuiteCase*>& cases);

}  // namespace mulciber::apps
