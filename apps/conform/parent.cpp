// The parent of `mulciber conform`, run_conform() of conform.h: starts children, watches over them,
// and keeps the record.
#include <fmt/format.h>
#include <poll.h>

#include <chrono>
#include <csignal>
#include <list>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>

#include "apps/cli/child_process.h"
#include "apps/cli/standard_error.h"
#include "apps/conform/conform.h"
#include "apps/conform/display.h"
#include "base/clock.h"
#include "conformance/schedule.h"

namespace mulciber::apps {
namespace {

using namespace conformance;
constexpr int kMostFailedStarts = 3;

std::string input_of(const ChildSettings& s, const Batch& batch,
                     const std::vector<const SuiteCase*>& cases) {
  std::string input = nlohmann::json{
      {"device", s.device},
      {"limits", s.limits},
      {"cache_folder", s.cache_folder},
      {"validate", s.validate},
      {"seed", s.seed},
      {"repeats", s.repeats},
      {"shake", name_of(s.shake)},
      {"injections", s.injections},
      {"vectors", s.vectors},
      {"malformed",
       s.malformed}}.dump();
  for (size_t index : batch) input += '\n' + cases[index]->name;
  return input + '\n';
}

struct Child {
  Child(Batch given, std::string input)
      : batch(std::move(given)), left(batch), process({"conform", "--worker"}, std::move(input)) {}

  Batch batch, left;  // left: cases without a result yet
  ChildProcess process;
  bool greeted = false;  // the child has opened its device
  bool lost_device = false;
  bool timed_out = false;
  std::optional<size_t> announced;
  Clock::time_point last_event = Clock::now();
};

class Parent {
 public:
  Parent(const ConformOptions& options, const std::vector<const SuiteCase*>& cases)
      : options_(options),
        cases_(cases),
        records_(cases.size()),
        waiver_list_(known_waivers()),
        timeout_(std::chrono::duration_cast<Clock::duration>(
            std::chrono::duration<double>(options.timeout))) {
    for (size_t i = 0; i < cases.size(); ++i) index_of_.emplace(cases[i]->name, i);
    if (!options.waivers.empty()) {
      const std::vector<Waiver> more = read_waivers(options.waivers);
      waiver_list_.insert(waiver_list_.end(), more.begin(), more.end());
    }
    if (options.resume) before_ = read_run(options.output);
    if (before_) {
      fingerprint_ = before_->fingerprint;
      for (CaseRecord& record : before_->cases) {
        const auto found = index_of_.find(record.name);
        if (found != index_of_.end()) records_[found->second] = record;
      }
      begin_record();
    }
  }

  ConformRun run() {
    const auto start = Clock::now();
    std::signal(SIGPIPE,
                SIG_IGN);  // a child that dies without reading its input must not end the parent
    Batch waiting;
    for (size_t i = 0; i < records_.size(); ++i) {
      if (!records_[i]) waiting.push_back(i);
    }
    Schedule schedule(waiting, options_.batch, options_.jobs);
    ConformDisplay display(cases_.size(), cases_.size() - waiting.size());
    schedule_ = &schedule;
    display_ = &display;
    while (!interrupted() && run_.aborted.empty()) {
      while (children_.size() < options_.jobs) {
        std::optional<Batch> batch = schedule.next();
        if (!batch) break;
        std::string input = input_of(options_.child, *batch, cases_);
        children_.emplace_back(std::move(*batch), std::move(input));
      }
      if (children_.empty()) break;
      wait_for_events();
      for (auto child = children_.begin(); child != children_.end();) {
        const auto next = std::next(child);
        attend(*child);
        if (child->process.results() < 0) end(child);
        child = next;
      }
      display.draw();
    }
    children_.clear();
    display.clear();
    return conclude(start);
  }

 private:
  // Continues the file, or begins a new one, once the fingerprint is known.
  void begin_record() {
    waivers_.emplace(waiver_list_, *fingerprint_);
    for (auto& record : records_) {
      if (!record) continue;
      // Earlier results are judged by the present waivers.
      if (record->result.status == Status::kWaiver) record->result.status = record->waived_from;
      record->waived.clear();
      waivers_->apply(*record);
    }
    if (options_.output.empty()) return;
    if (before_)
      writer_.emplace(options_.output, *before_);
    else
      writer_.emplace(options_.output, *fingerprint_);
  }

  void wait_for_events() {
    std::vector<pollfd> descriptors;
    auto earliest = Clock::now() + std::chrono::seconds(1);
    for (const Child& child : children_) {
      if (child.process.input() >= 0) descriptors.push_back({child.process.input(), POLLOUT, 0});
      if (child.process.results() >= 0) descriptors.push_back({child.process.results(), POLLIN, 0});
      if (child.process.words() >= 0) descriptors.push_back({child.process.words(), POLLIN, 0});
      earliest = std::min(earliest, child.last_event + timeout_);
    }
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(earliest - Clock::now()).count();
    poll(descriptors.data(), descriptors.size(), static_cast<int>(std::max<int64_t>(0, wait)));
  }

  // Every pipe can be tried, because none blocks.
  void attend(Child& child) {
    if (child.process.input() >= 0) child.process.feed();
    if (child.process.words() >= 0) child.process.take_words();
    for (const std::string& line : child.process.take_lines()) {
      child.last_event = Clock::now();
      take(child, line);
    }
    if (Clock::now() - child.last_event > timeout_ && !child.timed_out) {
      child.timed_out = true;
      child.process.kill();
    }
  }

  void take(Child& child, const std::string& line) {
    const auto json = nlohmann::json::parse(line);
    const std::string kind = json.at("kind");
    if (kind == "run") {
      greet(child, read_fingerprint(line, "a child"));
    } else if (kind == "start") {
      child.announced = index_of_.at(json.at("name").get<std::string>());
      display_->started(cases_[*child.announced]->op);
    } else {
      CaseRecord record = read_case(line, "a child");
      const size_t index = index_of_.at(record.name);
      child.announced.reset();
      std::erase(child.left, index);
      child.lost_device = record.result.status == Status::kDeviceLost;
      std::optional<Verdict> verdict = schedule_->reported(child.batch, index, record.result);
      if (verdict) settle(*verdict);
    }
  }

  void greet(Child& child, const Fingerprint& fingerprint) {
    child.greeted = true;
    failed_starts_ = 0;
    if (!fingerprint_) {
      fingerprint_ = fingerprint;
      fingerprint_->selection = to_options(options_.rule);
      begin_record();
      return;
    }
    const std::string differs = difference(fingerprint, *fingerprint_);
    if (differs.empty()) return;
    if (before_)
      throw ModelError(options_.output, "is of another run: " + differs,
                       "run without --resume, into another file");
    run_.aborted = "the device is not the one it was: " + differs;
  }

  void settle(Verdict verdict) {
    const SuiteCase& c = *cases_[verdict.index];
    CaseRecord record{c.name, c.op, c.row, c.types, std::move(verdict.result), "", Status::kPass};
    waivers_->apply(record);
    if (writer_) writer_->add(record);
    display_->ended(record);
    records_[verdict.index] = std::move(record);
  }

  void end(std::list<Child>::iterator child) {
    Child& c = *child;
    std::string words = c.process.wait();
    if (!c.greeted) {
      schedule_->give_back(c.batch);
      // For the first child such an exit code is final: no driver, no such device, a wrong limit.
      // Other ends may be temporary, for example when a device is lost and comes back.
      const bool clear =
          c.process.exit_code() == kDeviceFailed || c.process.exit_code() == kBadInput;
      if ((clear && !fingerprint_) || ++failed_starts_ >= kMostFailedStarts) {
        run_.aborted = clear         ? c.process.last_line()
                       : c.timed_out ? "the device cannot be opened: its driver hangs"
                                     : "the device cannot be opened: the process " + words;
        if (run_.aborted.starts_with("mulciber: ")) run_.aborted.erase(0, 10);
        if (clear) run_.aborted_code = c.process.exit_code();
      }
      children_.erase(child);
      return;
    }
    ChildEnd how;
    how.announced = c.announced;
    how.reported = c.batch.size() - c.left.size();
    how.kind = c.timed_out     ? ChildEnd::kTimedOut
               : c.lost_device ? ChildEnd::kDeviceLost
               : words.empty() ? ChildEnd::kFinished
                               : ChildEnd::kDied;
    how.words = c.timed_out     ? fmt::format("killed after {:g} s", options_.timeout)
                : words.empty() ? "ended early, with success"
                                : words;
    if (c.left.empty() && how.kind != ChildEnd::kDeviceLost && how.kind != ChildEnd::kFinished) {
      note_bad_end(c, how.words);
    }
    if (auto verdict = schedule_->ended(c.batch, c.left, how)) settle(*verdict);
    children_.erase(child);
  }

  // Records a fault after the last case: all cases were reported, but destroying the device failed.
  // That is a driver's fault like others, though the last case need not be its cause.
  void note_bad_end(const Child& child, const std::string& words) {
    const size_t last = child.batch.back();
    if (!records_[last] || !is_good(records_[last]->result.status)) return;
    CaseRecord record = *records_[last];
    record.result.status = Status::kFlaky;
    record.result.detail =
        fmt::format("passed, but then the process {} while it closed the device", words);
    waivers_->apply(record);
    if (writer_) writer_->add(record);
    display_->clear();
    tell("{}: {}: {}\n", name_of(record.result.status), record.name, record.result.detail);
    records_[last] = std::move(record);
  }

  ConformRun conclude(Clock::time_point start) {
    run_.seconds = seconds_since(start);
    if (fingerprint_) run_.record.fingerprint = *fingerprint_;
    bool all = true;
    for (auto& record : records_) {
      all = all && record;
      if (record) run_.record.cases.push_back(std::move(*record));
    }
    run_.record.complete = all;
    if (all && writer_) writer_->finish(run_.record.cases, run_.seconds);
    if (all && waivers_) run_.unused_waivers = waivers_->unused(run_.record.cases);
    return std::move(run_);
  }

  const ConformOptions& options_;
  const std::vector<const SuiteCase*>& cases_;
  std::unordered_map<std::string, size_t> index_of_;
  std::vector<std::optional<CaseRecord>> records_;
  std::vector<Waiver> waiver_list_;
  std::optional<Waivers> waivers_;
  std::optional<RunRecord> before_;
  std::optional<Fingerprint> fingerprint_;
  std::optional<RunWriter> writer_;
  std::list<Child> children_;
  Clock::duration timeout_;
  int failed_starts_ = 0;
  Schedule* schedule_ = nullptr;
  ConformDisplay* display_ = nullptr;
  ConformRun run_;
};

}  // namespace

ConformRun run_conform(const ConformOptions& options, const std::vector<const SuiteCase*>& cases) {
  return Parent(options, cases).run();
}

}  // namespace mulciber::apps
