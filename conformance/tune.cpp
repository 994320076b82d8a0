#include "conformance/tune.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "base/clock.h"
#include "conformance/time_case.h"
#include "runtime/deny_list.h"
#include "runtime/op.h"

namespace mulciber::conformance {
namespace {

/// Rows that selection could take for a problem, in the table's order. The plain form of the
/// problem is timed, whose facts differ: a row that cannot serve the plain form is not a candidate.
std::vector<const Kernel*> candidates(const Capabilities& device, const Problem& problem,
                                      const Problem& plain) {
  std::vector<const Kernel*> rows;
  for (const Kernel& row : kernels()) {
    const bool tested =
        device.passed_rows.empty() || std::ranges::count(device.passed_rows, row.id) > 0;
    if (row.op == problem.op && tested && device.has(row.made_for) &&
        why_not(row, device, problem).empty() && why_not(row, device, plain).empty())
      rows.push_back(&row);
  }
  return rows;
}

/// The fastest row, or the first where no row is clearly faster.
const Kernel* quickest(const std::vector<std::pair<const Kernel*, double>>& times, double gain) {
  const auto best = std::ranges::min_element(times, {}, [](const auto& one) { return one.second; });
  return best->second <= times.front().second * gain ? best->first : times.front().first;
}

/// A problem for which measurement can choose a row.
struct Open {
  Problem problem;
  size_t times;
  OpCase op_case;
  std::vector<const Kernel*> rows;
};

struct Survey {
  std::vector<Open> open;
  std::vector<Unmeasured> failed;
  size_t known = 0, alone = 0;
};

Survey survey(const Capabilities& device, const AskedProblems& asked,
              const std::map<std::string, std::string>& valid) {
  Survey found;
  for (const auto& [asked_problem, times, shorter] : problems_to_time(asked)) {
    Problem problem = asked_problem;
    if (valid.contains(choice_key(problem))) {
      ++found.known;
      continue;
    }
    try {
      OpCase op_case = op_cases(problem.op).make(problem.extents, problem.types);
      const Problem plain = problem_of(op_case, problem.op);
      if (shorter) problem.facts = plain.facts;
      std::vector<const Kernel*> rows = candidates(device, problem, plain);
      if (rows.size() < 2) {
        ++found.alone;
      } else {
        found.open.push_back({problem, times, std::move(op_case), std::move(rows)});
      }
    } catch (const std::exception& error) {
      found.failed.push_back({problem, nullptr, error.what()});
    }
  }
  return found;
}

enum class End : uint8_t { kTimed, kLeft, kLost };

/// Times each row. kLeft: it did not finish, for lack of memory or time, or no row did.
End measure(Device& device, const Open& open, const TuneOptions& options, Tuned& tuned) {
  for (const Kernel* row : open.rows) {
    if (options.cancelled && options.cancelled()) return End::kLeft;
    try {
      const double time =
          options.timer ? options.timer(device, open.op_case, *row)
                        : time_case(device, open.op_case, *row, options.seconds_per_row).median_ms;
      tuned.milliseconds.emplace_back(row, time);
    } catch (const DeviceError& error) {
      tuned.refused.emplace_back(row, error.what());
      if (error.kind() == DeviceError::Kind::kLost) return End::kLost;
      if (error.kind() == DeviceError::Kind::kOutOfMemory) return End::kLeft;
    } catch (const std::bad_alloc&) {
      tuned.refused.emplace_back(row, "out of memory");
      return End::kLeft;
    } catch (const std::exception& error) {
      tuned.refused.emplace_back(row, error.what());
    }
  }
  return tuned.milliseconds.empty() ? End::kLeft : End::kTimed;
}

/// The row to use from now on, or null where none is left.
const Kernel* choose(const Open& open, const Tuned& tuned, double clear_gain) {
  if (!tuned.milliseconds.empty()) return quickest(tuned.milliseconds, clear_gain);
  // The device was lost before any row was timed: take the next row, untimed.
  for (const Kernel* row : open.rows) {
    const auto is_row = [&](const auto& refused) { return refused.first == row; };
    if (std::ranges::none_of(tuned.refused, is_row)) return row;
  }
  return nullptr;
}

}  // namespace

std::vector<ToTime> problems_to_time(const AskedProblems& asked) {
  std::vector<ToTime> order;
  for (const auto& [key, one] : asked.problems) order.push_back({one.problem, one.times});
  std::ranges::stable_sort(order, std::greater{}, &ToTime::times);
  // Prompts are processed in passes of powers of two (models/generation/decoder_programs.h).
  constexpr uint64_t kShortestPass = 16;
  AskedProblems seen = asked;
  for (size_t i = 0, count = order.size(); i < count; ++i) {
    const Problem whole = order[i].problem;
    const size_t pass = measured(whole.op)->pass;
    if (pass >= whole.extents.size()) continue;
    for (uint64_t rows = kShortestPass; rows < whole.extents[pass]; rows *= 2) {
      Problem shorter{whole.op, whole.types, kAnyShape, whole.extents};
      shorter.extents[pass] = rows;
      const size_t known = seen.problems.size();
      seen.note(shorter);
      if (seen.problems.size() > known) order.push_back({shorter, order[i].times, true});
    }
  }
  return order;
}

std::string describe(const std::vector<Unmeasured>& failed) {
  const Unmeasured& first = failed.front();
  std::string text = fmt::format(
      "{} measurements failed, and where nothing was measured the first kernel of the table "
      "serves; "
      "the first: {}{}: {}",
      failed.size(), choice_key(first.problem),
      first.row ? fmt::format(" on {}", first.row->id) : "", first.reason);
  std::ranges::replace(text, '\n', ' ');
  return text;
}

size_t untuned(const Capabilities& device, const AskedProblems& asked) {
  return survey(device, asked, device.choices).open.size();
}

TuneReport tune(const DeviceOptions& given, const AskedProblems& asked,
                const TuneOptions& options) {
  const auto start = Clock::now();
  DeviceOptions device_options = given;
  device_options.profile = false;
  const std::unique_ptr<Device> device = Device::open(device_options);
  Choices choices(device->capabilities(), device_options.cache_folder);
  const Survey found =
      survey(device->capabilities(), asked,
             options.again ? std::map<std::string, std::string>() : choices.valid());

  TuneReport report{.failed = found.failed, .known = found.known, .alone = found.alone};
  const auto cancelled = [&] { return options.cancelled && options.cancelled(); };
  std::map<std::string, Choice> chosen;
  End end = End::kTimed;
  for (size_t i = 0; i < found.open.size() && end != End::kLost; ++i) {
    const Open& open = found.open[i];
    if (seconds_since(start) >= options.seconds || cancelled()) break;
    if (options.progress) options.progress(i, found.open.size());
    Tuned tuned{.problem = open.problem, .times = open.times};
    end = measure(*device, open, options, tuned);
    for (const auto& [row, reason] : tuned.refused)
      report.failed.push_back({open.problem, row, reason});
    if (end == End::kLeft) continue;
    tuned.chosen = choose(open, tuned, options.clear_gain);
    if (tuned.chosen == nullptr) continue;
    Choice& choice = chosen[choice_key(open.problem)];
    choice = {tuned.chosen->id, row_hash(*tuned.chosen), {}};
    for (const auto& [row, time] : tuned.milliseconds)
      choice.milliseconds.emplace_back(row->id, time);
    report.tuned.push_back(std::move(tuned));
  }
  report.left = found.open.size() - report.tuned.size();
  report.kept = !chosen.empty() && choices.keep(chosen);
  report.seconds = seconds_since(start);
  return report;
}

}  // namespace mulciber::conformance
