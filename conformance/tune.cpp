#include "conformance/tune.h"

#include <algorithm>

#include "base/clock.h"
#include "conformance/op_case.h"
#include "conformance/time_case.h"
#include "runtime/deny_list.h"
#include "runtime/op.h"

namespace mulciber::conformance {
namespace {

/// Rows that selection could take for a problem, in the table's order. What serves it may not serve
/// its plain form, which is what is timed (other facts): then it is no candidate.
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

/// The quickest, or the first where nothing is clearly quicker.
const Kernel* quickest(const std::vector<std::pair<const Kernel*, double>>& times, double gain) {
  const auto best = std::ranges::min_element(times, {}, [](const auto& one) { return one.second; });
  return best->second <= times.front().second * gain ? best->first : times.front().first;
}

/// The extent that is the number of rows or queries of a pass.
size_t pass_extent(Op op) { return op == Op::kMatmul ? 0 : 1; }

std::vector<AskedProblems::Asked> in_order(const AskedProblems& asked) {
  std::vector<AskedProblems::Asked> order;
  for (const auto& [key, one] : asked.problems) order.push_back(one);
  std::ranges::stable_sort(order, std::greater{}, &AskedProblems::Asked::times);
  // Prompts come in passes of powers of two (models/decoding/sequence_batch.cpp).
  constexpr uint64_t kShortestPass = 16;
  AskedProblems seen = asked;
  for (size_t i = 0, count = order.size(); i < count; ++i) {
    const Problem whole = order[i].problem;
    const size_t extent = pass_extent(whole.op);
    for (uint64_t rows = kShortestPass; rows < whole.extents[extent]; rows *= 2) {
      std::vector<uint64_t> extents = whole.extents;
      extents[extent] = rows;
      Problem shorter = problem_of(op_cases(whole.op).make(extents, whole.types), whole.op);
      const size_t known = seen.problems.size();
      seen.note(shorter);
      if (seen.problems.size() > known) order.push_back({shorter, order[i].times});
    }
  }
  return order;
}

/// A problem that measurement can choose for.
struct Open {
  Problem problem;
  size_t times;
  OpCase op_case;
  std::vector<const Kernel*> rows;
};

struct Survey {
  std::vector<Open> open;
  size_t known = 0, alone = 0;
};

Survey survey(const Capabilities& device, const AskedProblems& asked,
              const std::map<std::string, std::string>& valid) {
  Survey found;
  for (const auto& [problem, times] : in_order(asked)) {
    if (valid.contains(choice_key(problem))) {
      ++found.known;
      continue;
    }
    OpCase op_case = op_cases(problem.op).make(problem.extents, problem.types);
    std::vector<const Kernel*> rows = candidates(device, problem, problem_of(op_case, problem.op));
    if (rows.size() < 2) {
      ++found.alone;
    } else {
      found.open.push_back({problem, times, std::move(op_case), std::move(rows)});
    }
  }
  return found;
}

/// Times each row; false when it did not come to an end.
bool measure(Device& device, const Open& open, const TuneOptions& options, Tuned& tuned) {
  for (const Kernel* row : open.rows) {
    if (options.cancelled && options.cancelled()) return false;
    try {
      tuned.milliseconds.emplace_back(
          row, time_case(device, open.op_case, *row, options.seconds_per_row).median_ms);
    } catch (const KernelError& error) {
      tuned.refused.emplace_back(row, error.what());
    } catch (const DeviceError& error) {
      if (error.kind() != DeviceError::Kind::kOutOfMemory) throw;
      return false;
    }
  }
  return !tuned.milliseconds.empty();
}

}  // namespace

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

  TuneReport report{.known = found.known, .alone = found.alone};
  const auto cancelled = [&] { return options.cancelled && options.cancelled(); };
  std::map<std::string, Choice> chosen;
  for (size_t i = 0; i < found.open.size(); ++i) {
    const Open& open = found.open[i];
    if (seconds_since(start) >= options.seconds || cancelled()) break;
    if (options.progress) options.progress(i, found.open.size());
    Tuned tuned{.problem = open.problem, .times = open.times};
    if (!measure(*device, open, options, tuned)) continue;
    tuned.chosen = quickest(tuned.milliseconds, options.clear_gain);
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
