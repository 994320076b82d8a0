#include "conformance/tune.h"

#include <algorithm>

#include "base/clock.h"
#include "conformance/op_case.h"
#include "conformance/time_case.h"
#include "runtime/deny_list.h"
#include "runtime/op.h"

namespace mulciber::conformance {
namespace {

/// Rows that selection could take, in the table's order.
std::vector<const Kernel*> candidates(const Capabilities& device, const Problem& problem) {
  std::vector<const Kernel*> rows;
  for (const Kernel& row : kernels()) {
    const bool tested =
        device.passed_rows.empty() || std::ranges::count(device.passed_rows, row.id) > 0;
    if (row.op == problem.op && tested && device.has(row.made_for) &&
        why_not(row, device, problem).empty())
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

}  // namespace

TuneReport tune(const DeviceOptions& given, const AskedProblems& asked,
                const TuneOptions& options) {
  const auto start = Clock::now();
  DeviceOptions device_options = given;
  device_options.profile = false;
  const std::unique_ptr<Device> device = Device::open(device_options);
  Choices choices(device->capabilities(), device_options.cache_folder);
  const std::map<std::string, std::string> valid = choices.valid();

  TuneReport report;
  const std::vector<AskedProblems::Asked> order = in_order(asked);
  const auto cancelled = [&] { return options.cancelled && options.cancelled(); };
  std::map<std::string, Choice> found;
  for (size_t i = 0; i < order.size(); ++i) {
    const Problem& problem = order[i].problem;
    if (!options.again && valid.contains(choice_key(problem))) {
      ++report.known;
      continue;
    }
    const std::vector<const Kernel*> rows = candidates(device->capabilities(), problem);
    if (rows.size() < 2) {
      ++report.alone;
      continue;
    }
    if (seconds_since(start) >= options.seconds || cancelled()) {
      ++report.left;
      continue;
    }
    if (options.progress) options.progress(i, order.size());
    Tuned tuned{problem, order[i].times};
    bool complete = true;
    try {
      const OpCase op_case = op_cases(problem.op).make(problem.extents, problem.types);
      for (const Kernel* row : rows) {
        if (cancelled()) {
          complete = false;
          break;
        }
        // What serves the problem may not serve its plain form (other facts): then it is no choice.
        if (!why_not(*row, device->capabilities(), problem_of(op_case, problem.op)).empty())
          continue;
        tuned.milliseconds.emplace_back(
            row, time_case(*device, op_case, *row, options.seconds_per_row).median_ms);
      }
    } catch (const DeviceError& error) {
      if (error.kind() != DeviceError::Kind::kOutOfMemory) throw;
      complete = false;
    }
    if (!complete || tuned.milliseconds.size() < 2) {
      ++report.left;
      continue;
    }
    tuned.chosen = quickest(tuned.milliseconds, options.clear_gain);
    Choice& choice = found[choice_key(problem)];
    choice = {tuned.chosen->id, row_hash(*tuned.chosen), {}};
    for (const auto& [row, time] : tuned.milliseconds)
      choice.milliseconds.emplace_back(row->id, time);
    report.tuned.push_back(std::move(tuned));
  }
  report.kept = !found.empty() && choices.keep(found);
  report.seconds = seconds_since(start);
  return report;
}

}  // namespace mulciber::conformance
