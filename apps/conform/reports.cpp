// Reports of `mulciber conform`, and cases as folders of their own; conform.h declares them.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <optional>
#include <unordered_map>

#include "apps/conform/conform.h"
#include "apps/conform/models.h"
#include "conformance/records/verdict.h"
#include "conformance/report/html.h"
#include "conformance/report/junit.h"
#include "conformance/report/matrix.h"
#include "conformance/repro.h"

namespace mulciber::apps {

using namespace conformance;

namespace {

void write_text(const std::string& file, const std::string& text) {
  std::ofstream out(file, std::ios::binary);
  out << text;
  if (!out.flush())
    throw ModelError(file, "cannot be written",
                     "choose a folder that exists and can be written to");
}

/// Sorts cases: a file has them in the order in which they ended, reports in that of the suite.
void put_in_order(RunRecord& run) {
  std::unordered_map<std::string_view, size_t> places;
  for (const SuiteCase& c : suite_with_models()) places.emplace(c.name, places.size());
  const auto place = [&](const CaseRecord& record) {
    const auto found = places.find(record.name);
    return found == places.end() ? places.size() : found->second;
  };
  std::stable_sort(run.cases.begin(), run.cases.end(),
                   [&](const CaseRecord& a, const CaseRecord& b) { return place(a) < place(b); });
}

}  // namespace

void check_reports(const ConformOptions& options) {
  for (const std::string& file : {options.html, options.junit}) {
    // A file that cannot be written is reported before the run, not after an hour of cases.
    if (!file.empty() && !std::ofstream(file, std::ios::app)) {
      throw ModelError(file, "cannot be written",
                       "choose a folder that exists and can be written to");
    }
  }
  if (!options.compare.empty() && options.html.empty()) {
    throw ModelError("--compare", "is for the page",
                     "add --html FILE; --baseline compares in the terminal");
  }
}

void write_reports(const RunRecord& run, const ConformOptions& options) {
  if (!options.html.empty()) {
    std::optional<RunRecord> other;
    if (!options.compare.empty()) other = read_run(options.compare);
    write_text(options.html, to_html(run, other ? &*other : nullptr));
  }
  if (!options.junit.empty()) write_text(options.junit, to_junit(run));
}

int report_file(const ConformOptions& options) {
  if (options.html.empty() && options.junit.empty()) {
    throw ModelError("--report", "was asked for no report", "add --html FILE or --junit FILE");
  }
  check_reports(options);
  RunRecord run = read_run(options.report);
  put_in_order(run);
  write_reports(run, options);
  fmt::print("{}\n", verdict_of(run).sentence);
  return kSuccess;
}

int print_matrix(const ConformOptions& options) {
  std::vector<RunRecord> runs;
  for (const std::string& file : options.matrix) {
    runs.push_back(read_run(file));
    put_in_order(runs.back());
  }
  std::string findings;
  if (!options.findings.empty()) {
    std::ifstream in(options.findings, std::ios::binary);
    if (!in) throw ModelError(options.findings, "cannot be read", "give a file of Markdown");
    findings.assign(std::istreambuf_iterator<char>(in), {});
  }
  fmt::print("{}", matrix_markdown(runs, suite_with_models().size(), findings));
  return kSuccess;
}

int make_repro(const ConformOptions& options, const std::vector<const SuiteCase*>& cases) {
  const SuiteCase* found = nullptr;
  for (const SuiteCase* c : cases) {
    if (c->name == options.repro) found = c;
  }
  if (!found) {
    throw ModelError("--repro", fmt::format("there is no case '{}'", options.repro),
                     "`mulciber conform --list` prints all names");
  }
  const std::filesystem::path folder = options.output.empty() ? "repro" : options.output;
  CommonOptions common = options;
  common.device_options.ignore_verdicts =
      true;  // a repro may be about a row that failed its self-test
  const std::unique_ptr<Device> device = open_device(common);
  write_repro(*device, *found, options.child.seed, nullptr, folder);
  // The folder is written before the case runs, in a process of its own: it may hang the device.
  ConformOptions once = options;
  once.output.clear();
  once.resume = false;
  const ConformRun run = run_conform(once, {found});
  if (!run.record.cases.empty()) {
    const CaseResult& result = run.record.cases.front().result;
    write_repro(*device, *found, options.child.seed, &result, folder);
    fmt::print("{}{}{}\n", name_of(result.status), result.detail.empty() ? "" : ": ",
               result.detail);
  }
  fmt::print("wrote {}: cmake -S {} -B {} && cmake --build {} && {}\n", folder.string(),
             folder.string(), (folder / "build").string(), (folder / "build").string(),
             (folder / "build/repro").string());
  return run.record.complete ? kSuccess : kInterrupted;
}

}  // namespace mulciber::apps
