#include "conformance/self_test.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <map>
#include <mutex>
#include <thread>
#include <tuple>

#include "base/clock.h"
#include "conformance/run_case.h"
#include "runtime/deny_list.h"

namespace mulciber::conformance {
namespace {

constexpr uint64_t kFewElements =
    600;  // elements of the inputs: larger cases have edges and several workgroups
const RunOptions kRunOptions{.repeats = 6};

uint64_t elements_of(const OpCase& c) {
  uint64_t elements = 0;
  for (const CaseInput& input : c.inputs) elements += input.shape.elements();
  return elements;
}

/// Whether a case computes anything: an input that the op writes may be unchanged (positions past
/// the end of a cache).
bool changes_something(const OpCase& c) {
  const std::vector<CpuTensor> inputs = draw_inputs(c, kRunOptions.seed);
  for (const CpuTensor& output : c.reference(inputs, {})) {
    for (const CpuTensor& input : inputs) {
      if (inputs.size() > 1 && input.values == output.values) return false;
    }
  }
  return true;
}

bool may_be_chosen(const Kernel& row, const Capabilities& device) {
  return device.has(row.made_for) && why_not_runnable(row, device).empty();
}

/// Sorts the first rows of every op and type before the second ones; rows that only quantized
/// activations use come last.
void likeliest_first(std::vector<const Kernel*>& rows) {
  std::map<std::pair<Op, std::pair<DataType, DataType>>, int> seen;
  std::map<const Kernel*, std::pair<bool, int>> rank;
  for (const Kernel* row : rows) {
    const bool optional =
        row->types.activation == DataType::kQ8_1 || row->types.weight == DataType::kQ8_1;
    rank[row] = {optional, seen[{row->op, {row->types.activation, row->types.weight}}]++};
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const Kernel* a, const Kernel* b) { return rank[a] < rank[b]; });
}

}  // namespace

OpCase self_test_case(const Kernel& row) {
  std::vector<OpCase> suiting;
  for (OpCase& c : op_cases(row.op).samples(row.types)) {
    if (elements_of(c) < kFewElements || c.subnormal || c.needs_constant != 0) continue;
    if (suits(row, c)) suiting.push_back(std::move(c));
  }
  const auto rank = [&](const OpCase& c) {
    return std::tuple(!fills_tile(row, c), c.degenerate, elements_of(c));
  };
  std::stable_sort(suiting.begin(), suiting.end(),
                   [&](const OpCase& a, const OpCase& b) { return rank(a) < rank(b); });
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

namespace {

/// Tests rows one after the other, on several threads.
class Tester {
 public:
  Tester(const DeviceOptions& device_options, const SelfTestOptions& options, DenyList& list,
         std::vector<const Kernel*> rows, SelfTestReport& report, Clock::time_point start)
      : device_options_(device_options),
        options_(options),
        list_(list),
        rows_(std::move(rows)),
        report_(report),
        start_(start) {}

  size_t left() const { return rows_.size() - next_; }

  /// Tests rows up to `end`. Returns the device, which is another one after a loss.
  std::unique_ptr<Device> work(std::unique_ptr<Device> device, size_t end) {
    while (const Kernel* row = begin(end)) {
      const OpCase test = self_test_case(*row);
      const CaseResult result =
          run_case(*device, test, options_.stand_in ? &options_.stand_in(*row) : row, kRunOptions);
      note(*row, test, result);
      if (result.status == Status::kDeviceLost) {
        device.reset();
        device = Device::open(device_options_);
      }
    }
    return device;
  }

 private:
  const Kernel* begin(size_t end) {
    std::lock_guard lock(mutex_);
    const double elapsed = seconds_since(start_);
    if (next_ >= end || elapsed > options_.seconds || (options_.cancelled && options_.cancelled()))
      return nullptr;
    const Kernel& row = *rows_[next_];
    if (options_.progress) options_.progress(row, next_, rows_.size());
    ++next_;
    list_.begin(row);
    return &row;
  }

  void note(const Kernel& row, const OpCase& test, const CaseResult& result) {
    std::lock_guard lock(mutex_);
    switch (result.status) {
      case Status::kPass:
      case Status::kQualityWarning:
        list_.pass(row);
        ++report_.passed;
        break;
      case Status::kFail:
      case Status::kFlaky:
      case Status::kDeviceLost:
      case Status::kNotSupported: {  // the driver could not make the pipeline: nothing else can
                                     // fail in such a small case
        std::string reason =
            fmt::format("{} in {}: {}", name_of(result.status), test.name, result.detail);
        report_.failures.push_back({row.id, reason});
        list_.fail(row, std::move(reason));
        break;
      }
      default:  // out of memory, or a fault of the suite: no verdict on the row
        list_.abandon(row);
        ++report_.untested;
    }
  }

  const DeviceOptions& device_options_;
  const SelfTestOptions& options_;
  DenyList& list_;
  const std::vector<const Kernel*> rows_;
  SelfTestReport& report_;
  const Clock::time_point start_;
  std::mutex mutex_;
  size_t next_ = 0;
};

}  // namespace

SelfTestReport self_test(const DeviceOptions& given, const SelfTestOptions& options) {
  const auto start = Clock::now();
  DeviceOptions device_options = given;
  device_options.ignore_verdicts = true;
  device_options.profile = false;
  std::unique_ptr<Device> device = Device::open(device_options);
  const Capabilities capabilities = device->capabilities();

  SelfTestReport report;
  DenyList list(capabilities, device_options.cache_folder);
  report.kept = list.begin_testing(options.again);
  if (!report.kept && !options.again) return report;
  std::vector<const Kernel*> rows;
  for (const Kernel& row : kernels()) {
    const bool wanted = options.again || list.verdict(row) == DenyList::Verdict::kUntested;
    if (wanted && may_be_chosen(row, capabilities)) rows.push_back(&row);
  }
  likeliest_first(rows);
  // Rows that may kill the process again are tested alone, so that no other test shares the blame.
  const auto suspects = std::stable_partition(
      rows.begin(), rows.end(), [&](const Kernel* row) { return list.suspect(*row); });
  const size_t alone = static_cast<size_t>(suspects - rows.begin()), count = rows.size();

  const unsigned cores = std::clamp(std::thread::hardware_concurrency(), 1u, 4u);
  const unsigned threads = options.threads ? options.threads : capabilities.has(kCpu) ? cores : 1;
  Tester tester(device_options, options, list, std::move(rows), report, start);
  device = tester.work(std::move(device), alone);
  std::vector<std::future<void>> others;
  for (unsigned i = 1; i < std::min<size_t>(threads, tester.left()); ++i) {
    others.push_back(
        std::async(std::launch::async, [&] { tester.work(Device::open(device_options), count); }));
  }
  tester.work(std::move(device), count);
  for (std::future<void>& other : others) other.get();
  report.untested += tester.left();
  report.seconds = seconds_since(start);
  return report;
}

}  // namespace mulciber::conformance
