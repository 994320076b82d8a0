// `mulciber conform`: the conformance suite, a verdict on a driver.
#include "apps/conform/conform.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <thread>

#include "apps/cli/standard_error.h"
#include "apps/conform/models.h"
#include "conformance/malformed.h"
#include "conformance/vectors/vectors.h"

namespace mulciber::apps {
namespace {

using namespace conformance;

struct FaultName {
  const char* word;
  Fault fault;
  bool beside_others;
};
constexpr FaultName kFaults[] = {{"crash", Fault::kCrash, false},
                                 {"hang", Fault::kHang, false},
                                 {"corrupt", Fault::kCorrupt, false},
                                 {"flaky", Fault::kFlaky, false},
                                 {"order", Fault::kOrder, false},
                                 {"outside", Fault::kWriteOutside, false},
                                 {"lost", Fault::kLoseDevice, false},
                                 {"misuse", Fault::kMisuse, false},
                                 {"crash-beside-others", Fault::kCrash, true}};

void read_selection(ConformOptions& options) {
  if (!options.fraction.empty()) options.rule.fraction = parse_fraction(options.fraction);
  if (options.caselist.empty()) return;
  if (options.caselist == "-") {
    options.rule.caselist = read_caselist(std::cin);
    return;
  }
  std::ifstream in(options.caselist);
  if (!in)
    throw ModelError(options.caselist, "cannot be read",
                     "give a file with one name a line, or - for standard input");
  options.rule.caselist = read_caselist(in);
}

int exit_code(const ConformRun& run, const std::vector<Change>& changed, bool with_baseline) {
  if (!run.aborted.empty()) return run.aborted_code;
  if (!run.record.complete) return kInterrupted;
  const bool bad =
      with_baseline ? std::any_of(changed.begin(), changed.end(),
                                  [](const Change& c) { return c.direction == Direction::kWorse; })
                    : std::any_of(run.record.cases.begin(), run.record.cases.end(),
                                  [](const CaseRecord& r) { return !is_good(r.result.status); });
  return bad ? kOverTolerance : kSuccess;
}

int conform(ConformOptions& options) {
  interrupted();  // installs the handler
  for (const std::string& text : options.child.injections) parse_injection(text);
  if (!options.matrix.empty()) return print_matrix(options);
  if (!options.report.empty()) return report_file(options);
  if (!options.repro.empty()) return make_repro(options, list_cases(options.child));
  check_reports(options);
  read_selection(options);
  const std::vector<const SuiteCase*> cases = select_cases(list_cases(options.child), options.rule);
  if (cases.empty()) {
    tell("mulciber: no case is selected; `mulciber conform --list` prints all names\n");
    return kNothingCompared;
  }
  if (options.list) {
    for (const SuiteCase* c : cases) fmt::print("{}\n", c->name);
    return kSuccess;
  }
  std::optional<RunRecord> baseline;
  if (!options.baseline.empty()) baseline = read_run(options.baseline);

  const ConformRun run = run_conform(options, cases);
  std::vector<Change> changed;
  if (baseline) changed = changes(baseline->cases, run.record.cases);
  const int code = exit_code(run, changed, baseline.has_value());
  if (options.json) {
    print_summary_json(run, changed, code);
  } else if (!run.record.cases.empty()) {
    print_summary(run);
    if (baseline) print_changes(changed);
  }
  if (!run.record.cases.empty()) write_reports(run.record, options);
  if (!run.aborted.empty()) tell("mulciber: {}\n", run.aborted);
  if (!run.record.complete && !options.output.empty() && !run.record.cases.empty()) {
    tell("mulciber: stopped; the same command with --resume goes on\n");
  }
  return code;
}

void add_case_options(Command& command, ConformOptions& options) {
  const char* kCases = "Cases";
  command.add_flag("--list", options.list, "print the names of the selected cases, and run none")
      .group(kCases);
  command
      .add_option("--filter", options.rule.filters,
                  "cases whose names match GLOB, which may come several times")
      .type_name("GLOB")
      .one_value_each()
      .group(kCases);
  command.add_option("--exclude", options.rule.excludes, "but none that match GLOB")
      .type_name("GLOB")
      .one_value_each()
      .group(kCases);
  command
      .add_option("--caselist", options.caselist,
                  "cases named in FILE, one a line; - reads standard input")
      .type_name("FILE")
      .group(kCases);
  command.add_flag("--mustpass", options.rule.must_pass, "the short list").group(kCases);
  command
      .add_option("--vectors", options.child.vectors,
                  "add recorded results: FILE.json with FILE.safetensors "
                  "(docs/reference/conformance-vectors.md)")
      .type_name("FILE")
      .one_value_each()
      .group(kCases);
  command
      .add_option("--malformed", options.child.malformed,
                  "add files that a reader must refuse, by their manifest")
      .type_name("FILE")
      .one_value_each()
      .group(kCases);
  command
      .add_option("--fraction", options.fraction,
                  "part I, from 0, of N equal parts of the selection")
      .type_name("I,N")
      .group(kCases);
}

void add_run_options(Command& command, ConformOptions& options) {
  const char* kRun = "Run";
  command.add_option("--seed", options.child.seed, "of inputs and buffer offsets (0)").group(kRun);
  command
      .add_option("--repeat", options.child.repeats,
                  "runs of each case that must agree bit by bit (20)")
      .range(1, 1000000)
      .group(kRun);
  const Option shake =
      command
          .add_flag(
              "--shake", options.shake,
              "run each case with its workgroups and subgroups in three other orders too, "
              "which must give the same bits; with --mustpass every fifth case runs in one anyway")
          .group(kRun);
  command.add_flag("--no-shake", options.no_shake, "run cases in the device's own order alone")
      .excludes(shake)
      .group(kRun);
  command
      .add_option("--timeout", options.timeout,
                  "seconds that a case may take, compilation included (60)")
      .range(0.1, 86400.0)
      .check([](const std::string& text) {
        return std::isnan(std::strtod(text.c_str(), nullptr)) ? text + " is no time" : "";
      })
      .group(kRun);
  options.jobs = std::thread::hardware_concurrency() >= 2 ? 2 : 1;
  command.add_option("--jobs", options.jobs, "child processes at a time (2; 1 on one core)")
      .range(1, 256)
      .group(kRun);
  command.add_option("--batch", options.batch, "most cases that one child runs (200)")
      .range(1, 100000)
      .group(kRun);
  command
      .add_option("--inject", options.child.injections,
                  "put a fault into the cases that match GLOB, to test the suite itself: crash, "
                  "hang, corrupt, flaky, order (seen where a case is shaken), "
                  "outside, lost, misuse (seen under --validate), crash-beside-others")
      .type_name("KIND:GLOB")
      .one_value_each()
      .group(kRun);
}

void add_result_options(Command& command, ConformOptions& options) {
  const char* kResults = "Results";
  const Option output = command
                            .add_option("--output", options.output,
                                        "write each result to FILE as it comes, as JSON lines")
                            .type_name("FILE")
                            .group(kResults);
  command
      .add_flag("--resume", options.resume,
                "go on with the file of --output: cases that have a result there are kept")
      .needs(output)
      .group(kResults);
  command
      .add_option("--baseline", options.baseline,
                  "exit with 1 only where a case is worse than in FILE, an earlier --output")
      .type_name("FILE")
      .group(kResults);
  command
      .add_option(
          "--waivers", options.waivers,
          "failures that are known: a JSON list of objects with cases (a glob), reason, and "
          "as wanted driver, from, to, device, link")
      .type_name("FILE")
      .group(kResults);
}

void add_report_options(Command& command, ConformOptions& options) {
  const char* kReports = "Reports";
  command.add_option("--html", options.html, "write a page of the results to FILE, for people")
      .type_name("FILE")
      .group(kReports);
  command.add_option("--junit", options.junit, "write JUnit XML to FILE, for CI servers")
      .type_name("FILE")
      .group(kReports);
  command
      .add_option("--compare", options.compare,
                  "let the page compare with FILE, an earlier --output")
      .type_name("FILE")
      .group(kReports);
  command
      .add_option("--report", options.report,
                  "run nothing: make the reports of FILE, an earlier --output")
      .type_name("FILE")
      .group(kReports);
  command
      .add_option("--repro", options.repro,
                  "write CASE as a folder (--output, or repro) that anybody can build: shaders, "
                  "buffers, what is expected, and a C program")
      .type_name("CASE")
      .group(kReports);
  command
      .add_option("--matrix", options.matrix,
                  "run nothing: print a Markdown table of several runs, "
                  "docs/reference/conformance-results.md")
      .type_name("FILES")
      .group(kReports);
  command
      .add_option("--findings", options.findings,
                  "Markdown to stand in the table's page, of faults found")
      .type_name("FILE")
      .group(kReports);
}

}  // namespace

Injection parse_injection(const std::string& text) {
  const size_t colon = text.find(':');
  for (const FaultName& name : kFaults) {
    if (colon != std::string::npos && text.substr(0, colon) == name.word) {
      return {name.fault, name.beside_others, text.substr(colon + 1)};
    }
  }
  std::string known;
  for (const FaultName& name : kFaults)
    known += fmt::format("{}{}", known.empty() ? "" : ", ", name.word);
  throw ModelError("--inject", fmt::format("'{}' is no fault", text),
                   "give KIND:GLOB; kinds are " + known);
}

std::vector<const SuiteCase*> list_cases(const ChildSettings& settings) {
  // A process lists the cases of one set of files only, and keeps them.
  static std::vector<SuiteCase> outside;
  if (outside.empty()) {
    for (const std::string& file : settings.vectors)
      std::ranges::move(load_vectors(file), std::back_inserter(outside));
    for (const std::string& file : settings.malformed)
      std::ranges::move(load_malformed(file, models_under_test()), std::back_inserter(outside));
  }
  std::vector<const SuiteCase*> cases;
  for (const SuiteCase& c : suite_with_models()) cases.push_back(&c);
  for (const SuiteCase& c : outside) cases.push_back(&c);
  return cases;
}

void add_conform(Command& app, int& code) {
  auto options = std::make_shared<ConformOptions>();
  Command command = app.add_subcommand(
      "conform", "Test a driver: every kernel row against its definition, in child processes");
  auto worker = std::make_shared<bool>(false);
  command.add_flag("--worker", *worker).group("");  // how the command starts its own children

  add_case_options(command, *options);
  add_run_options(command, *options);
  add_result_options(command, *options);
  add_report_options(command, *options);
  add_common_options(command, *options);
  command.remove_option("--profile");  // the children open the devices
  command.footer(
      "Each case runs --repeat times, its outputs poisoned before, between guard bytes, at random "
      "offsets, and\n"
      "once more from a new recording, beside a busy second queue where the device has one; with "
      "--mustpass or\n"
      "--shake with workgroups and subgroups in other orders too. A child process that dies costs "
      "one case,\nnot the run.\n\n"
      "Exit codes: 0 when every case is Pass, NotSupported, QualityWarning or Waiver; 1 when one "
      "is not (with\n"
      "--baseline: when one is worse than there); 2 bad input; 3 no case selected; 4 no device; "
      "130 interrupted.\n\n"
      "Example: mulciber conform --filter 'mulciber.matmul.*' --output run.jsonl");
  command.callback([options, worker, &code] {
    if (*worker) {
      code = run_conform_worker();
      return;
    }
    options->child.device = options->device_options.device;
    options->child.limits = options->device_options.limits;
    options->child.cache_folder = options->device_options.cache_folder;
    options->child.validate = options->device_options.validate;
    options->child.shake = options->shake                                  ? Shake::kAll
                           : options->rule.must_pass && !options->no_shake ? Shake::kSome
                                                                           : Shake::kNone;
    code = conform(*options);
  });
}

}  // namespace mulciber::apps
