#include "conformance/self_test.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "conformance/run_case.h"
#include "runtime/deny_list.h"

namespace mulciber::conformance {
namespace {

constexpr uint64_t kFewElements = 600;  // of the inputs: from there on, cases have edges and several workgroups
constexpr RunOptions kRunOptions{.repeats = 6};

uint64_t elements_of(const OpCase& c) {
  uint64_t elements = 0;
  for (const CaseInput& input : c.inputs) elements += input.shape.elements();
  return elements;
}

/// Whether there is something to compute: an input that the op writes may stay as it is (positions past the
/// end of a cache).
bool changes_something(const OpCase& c) {
  const std::vector<HostTensor> inputs = draw_inputs(c, kRunOptions.seed);
  for (const HostTensor& output : c.reference(inputs, {})) {
    for (const HostTensor& input : inputs) {
      if (inputs.size() > 1 && input.values == output.values) return false;
    }
  }
  return true;
}

bool may_be_chosen(const Kernel& row, const Capabilities& device) {
  return device.has(row.made_for) && why_not_runnable(row, device).empty();
}

/// The first rows of every op and type before the second ones.
void likeliest_first(std::vector<const Kernel*>& rows) {
  std::map<std::pair<Op, std::pair<DataType, DataType>>, int> seen;
  std::map<const Kernel*, int> rank;
  for (const Kernel* row : rows) rank[row] = seen[{row->op, {row->types.activation, row->types.weight}}]++;
  std::stable_sort(rows.begin(), rows.end(), [&](const Kernel* a, const Kernel* b) { return rank[a] < rank[b]; });
}

}  // namespace

OpCase self_test_case(const Kernel& row) {
  std::vector<OpCase> suiting;
  for (OpCase& c : op_cases(row.op).samples(row.types)) {
    if (elements_of(c) < kFewElements || c.subnormal) continue;
    if ((row.shape & ~problem_of(c, row.op).facts) == 0) suiting.push_back(std::move(c));
  }
  std::stable_sort(suiting.begin(), suiting.end(),
                   [](const OpCase& a, const OpCase& b) {
                     return std::pair(a.degenerate, elements_of(a)) < std::pair(b.degenerate, elements_of(b));
                   });
  if (suiting.empty()) throw KernelError(row.id, "no sample of its op suits it", "");
  for (const OpCase& c : suiting) {
    if (c.exact && changes_something(c)) return c;
  }
  return suiting.front();
}

std::vector<const Kernel*> untested_rows(const Capabilities& device) {
  std::vector<const Kernel*> rows;
  for (const Kernel& row : kernels()) {
    const bool passed = std::ranges::count(device.passed_rows, row.id) > 0;
    if (!passed && may_be_chosen(row, device)) rows.push_back(&row);
  }
  likeliest_first(rows);
  return rows;
}

SelfTestReport self_test(const DeviceSettings& given, const SelfTestOptions& options) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  DeviceSettings settings = given;
  settings.ignore_verdicts = true;
  settings.profile = false;
  std::unique_ptr<Device> device = Device::open(settings);
  const Capabilities capabilities = device->capabilities();

  SelfTestReport report;
  DenyList list(capabilities, settings.cache_folder);
  report.kept = list.begin_testing(options.again);
  if (!report.kept && !options.again) return report;
  std::vector<const Kernel*> rows;
  for (const Kernel& row : kernels()) {
    const bool wanted = options.again || list.verdict(row) == DenyList::Verdict::kUntested;
    if (wanted && may_be_chosen(row, capabilities)) rows.push_back(&row);
  }
  likeliest_first(rows);

  for (size_t i = 0; i < rows.size(); ++i) {
    if (elapsed() > options.seconds || (options.cancelled && options.cancelled())) {
      report.untested += rows.size() - i;
      break;
    }
    const Kernel& row = *rows[i];
    if (options.progress) options.progress(row, i, rows.size());
    const OpCase test = self_test_case(row);
    list.begin(row);
    const Kernel& runs = options.stand_in ? options.stand_in(row) : row;
    const CaseResult result = run_case(*device, test, &runs, kRunOptions);
    switch (result.status) {
      case Status::kPass:
      case Status::kQualityWarning:
        list.pass(row);
        ++report.passed;
        break;
      case Status::kFail:
      case Status::kFlaky:
      case Status::kDeviceLost:
      case Status::kNotSupported: {  // the driver could not make the pipeline: nothing else of so small a case fails
        std::string reason = fmt::format("{} in {}: {}", name_of(result.status), test.name, result.detail);
        report.failures.push_back({row.id, reason});
        list.fail(row, std::move(reason));
        break;
      }
      default:  // out of memory, or a fault of the suite: nothing is known of the row
        list.abandon(row);
        ++report.untested;
    }
    if (result.status == Status::kDeviceLost) {
      device.reset();
      device = Device::open(settings);
    }
  }
  report.seconds = elapsed();
  return report;
}

}  // namespace mulciber::conformance
