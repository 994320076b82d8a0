// Every barrier of every row matters: without it some case gives other bits in some order of
// workgroups and subgroups, or tests/mutants/barriers.txt says why none does.
//   MULCIBER_BARRIERS=write barriers_test   searches again, and writes the list and
//                                           docs/reference/barriers.md; with
//                                           MULCIBER_BARRIER_ROWS=GLOB: for those rows alone
#include <cstdio>
#include <cstdlib>
#include <list>

#include "base/clock.h"
#include "conformance/case_program.h"
#include "conformance/orders.h"
#include "conformance/run_case.h"
#include "runtime/spirv_reflection.h"
#include "tests/barrier_list.h"
#include "tests/catch.h"
#include "tests/conformance_rows.h"
#include "tests/device.h"

using namespace mulciber;
using namespace mulciber::conformance;
using namespace mulciber::tests;

namespace {

using Bytes = std::vector<std::vector<std::byte>>;
const Order kOrders[] = {{Order::kForward}, {Order::kReverse}, {Order::kRandom, 1}};

/// A device that runs one workgroup per dispatch, which processes all rows or heads one after
/// another: some barriers separate them.
Device& narrow_device() {
  static const std::unique_ptr<Device> kDevice =
      Device::open(options_from_environment({.limits = "groups=1", .ignore_verdicts = true}));
  return *kDevice;
}
const std::string kNarrow = "@one_workgroup";  // after a case's name

/// The cases of a row on a device, and the row's results for them.
class RowCases {
 public:
  RowCases(Device& device, const Kernel& row, std::string suffix = {})
      : device_(device), row_(row), suffix_(std::move(suffix)) {
    for (OpCase& c : op_cases(row.op).samples(row.types)) {
      if (suits(row, c)) cases_.push_back({std::move(c), {}, {}});
    }
    // Small cases come first: they are enough for most faults.
    std::stable_sort(cases_.begin(), cases_.end(), [](const Entry& a, const Entry& b) {
      return elements(a.op_case) < elements(b.op_case);
    });
  }

  size_t size() const { return cases_.size(); }
  std::string name(size_t i) const { return cases_[i].op_case.name + suffix_; }
  /// The index of a case, or size() where there is none of that name.
  size_t find(const std::string& wanted) const {
    size_t i = 0;
    while (i < cases_.size() && name(i) != wanted) ++i;
    return i;
  }

  /// Whether `broken` gives other bits for a case than the row does.
  bool differs(size_t i, const Kernel& broken, const Order& order) {
    Entry& entry = cases_[i];
    if (entry.inputs.empty()) {
      // Other inputs run first, so that shared memory from an earlier run does not hold the values
      // that the barrier waits for.
      for (const uint64_t seed : {1, 0}) entry.inputs.push_back(draw_inputs(entry.op_case, seed));
      entry.right = results(entry, row_, {});
    }
    return results(entry, broken, order) != entry.right;
  }

 private:
  struct Entry {
    OpCase op_case;
    std::vector<std::vector<CpuTensor>> inputs;
    Bytes right;
  };

  static uint64_t elements(const OpCase& c) {
    uint64_t count = 0;
    for (const CaseInput& input : c.inputs) count += input.shape.elements();
    return count;
  }
  Bytes results(const Entry& entry, const Kernel& kernel, const Order& order) {
    const OrderScope scope(device_, order);
    CaseProgram program(device_, entry.op_case, &kernel);
    for (const std::vector<CpuTensor>& inputs : entry.inputs) {
      program.fill(inputs);
      program.program().run();
    }
    return program.read_outputs();
  }

  Device& device_;
  const Kernel& row_;
  const std::string suffix_;
  std::vector<Entry> cases_;
};

/// `row` without one of its barriers. The device finds pipelines by the address of their kernel,
/// and keeps them as long as it lives, so the copies are kept.
const Kernel& broken_kernel(const Kernel& row, const Barrier& barrier) {
  static std::list<std::pair<std::vector<uint32_t>, Kernel>> kept;
  auto& [words, kernel] = kept.emplace_back(without(row.spirv, barrier), row);
  kernel.spirv = words;
  return kernel;
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

/// Tries cases in every order until one shows that the barrier is missing: first the case that
/// showed it in a row of the same source (`twin`), then small cases, the largest and some between.
/// Where the twin is listed as unseen with a reason, none is tried: storage types change no
/// barrier, and each case takes seconds to compile.
void search(RowCases& cases, const Kernel& broken, const BarrierLine* twin, BarrierLine& line) {
  if (twin && twin->caught.empty() && !twin->reason.empty()) return;
  constexpr size_t kSmall = 12, kLarge = 4;
  std::vector<size_t> tried;
  if (twin) {
    for (const auto& [order, name] : twin->caught) {
      if (const size_t i = cases.find(name); i < cases.size()) tried.push_back(i);
    }
  }
  for (size_t i = 0; i < cases.size(); ++i) {
    if (i < kSmall || i + kLarge >= cases.size() || i % 5 == 0) tried.push_back(i);
  }
  size_t likely = cases.size();
  for (const Order& order : kOrders) {
    tried.insert(tried.begin(), likely);
    const auto found = std::find_if(tried.begin(), tried.end(), [&](size_t i) {
      return i < cases.size() && cases.differs(i, broken, order);
    });
    if (found == tried.end()) continue;
    likely = *found;
    line.caught[name_of(order)] = cases.name(likely);
  }
}

/// The lines of another row of the same source with as many barriers, if there is one.
std::vector<BarrierLine> twin_lines(const std::vector<BarrierLine>& lines, const Kernel& row,
                                    size_t barriers) {
  for (const Kernel& other : kernels()) {
    if (std::string_view(other.source) != row.source || &other == &row) continue;
    std::vector<BarrierLine> found;
    std::copy_if(lines.begin(), lines.end(), std::back_inserter(found),
                 [&](const BarrierLine& line) { return line.row == other.id; });
    if (found.size() == barriers) return found;
  }
  return {};
}

/// Whether a listed case of the barrier still fails without it; one is enough. Orders that the list
/// leaves out are not tried.
bool still_caught(RowCases& wide, RowCases& narrow, const Kernel& broken, const BarrierLine& line) {
  for (const Order& order : kOrders) {
    const auto found = line.caught.find(name_of(order));
    if (found == line.caught.end()) continue;
    RowCases& cases = found->second.ends_with(kNarrow) ? narrow : wide;
    const size_t i = cases.find(found->second);
    INFO("case " << found->second);
    REQUIRE(i < cases.size());
    if (cases.differs(i, broken, order)) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("The lack of a barrier is caught, or listed with the reason why not") {
  Device& device = tests::shared_device();
  const bool writes = environment("MULCIBER_BARRIERS") == "write";
  const std::string rows = environment("MULCIBER_BARRIER_ROWS");
  // Subgroups of another size need other barriers, and drivers run workgroups in other orders.
  const Capabilities& c = device.capabilities();
  if (!writes && (c.driver_id != VK_DRIVER_ID_MESA_LLVMPIPE || c.driver_version[0] != 22))
    MULCIBER_SKIP("the list is of lavapipe of Mesa 22.3");
  std::string heading;
  const std::vector<BarrierLine> lines = read_barrier_list(&heading);
  std::vector<BarrierLine> written;
  for (const BarrierLine& line : lines) {
    INFO(line.row);
    CHECK(find_kernel(line.row));
  }
  // Where only every n-th case runs, only every m-th barrier does, with a smaller m: each barrier
  // compiles pipelines of its own.
  const size_t step = (case_step() + 5) / 6;
  size_t caught = 0, tried = 0;
  for (const Kernel& row : kernels()) {
    const std::vector<Barrier> barriers =
        row.spirv.empty() ? std::vector<Barrier>() : barriers_of(row.spirv);
    const bool runs = why_not_runnable(row, device.capabilities()).empty() &&
                      (rows.empty() || matches(rows, row.id));
    std::vector<BarrierLine> listed;
    std::copy_if(lines.begin(), lines.end(), std::back_inserter(listed),
                 [&](const BarrierLine& line) { return line.row == row.id; });
    if (!runs || barriers.empty()) {
      if (!row.spirv.empty() && barriers.empty()) CHECK(listed.empty());
      written.insert(written.end(), listed.begin(), listed.end());
      continue;
    }
    INFO(row.id << ", which MULCIBER_BARRIERS=write lists anew");
    if (writes) listed.resize(barriers.size());
    REQUIRE(listed.size() == barriers.size());
    RowCases cases(device, row), narrow(narrow_device(), row, kNarrow);
    std::vector<BarrierLine> twins = twin_lines(written, row, barriers.size());
    if (twins.empty()) twins = twin_lines(lines, row, barriers.size());
    for (size_t i = 0; i < barriers.size(); ++i) {
      BarrierLine& line = listed[i];
      INFO("barrier " << i + 1 << ", " << barriers[i].kind);
      const Kernel& broken = broken_kernel(row, barriers[i]);
      ++tried;
      if (writes) {
        line.row = row.id, line.number = i + 1, line.kind = barriers[i].kind;
        const Clock::time_point start = Clock::now();
        line.caught.clear();
        const BarrierLine* twin = twins.empty() ? nullptr : &twins[i];
        const bool narrow_first =
            twin && !twin->caught.empty() && twin->caught.begin()->second.ends_with(kNarrow);
        search(narrow_first ? narrow : cases, broken, twin, line);
        if (line.caught.empty()) search(narrow_first ? cases : narrow, broken, twin, line);
        if (line.caught.empty() && line.reason.empty() && twin) line.reason = twin->reason;
        std::printf("%s  (%.1f s)\n", text_of(line).c_str(), seconds_since(start));
        std::fflush(stdout);
      } else {
        REQUIRE(line.number == i + 1);
        CHECK(line.kind == barriers[i].kind);
        if (line.caught.empty()) CHECK_FALSE(line.reason.empty());
        if (!line.caught.empty() && caught % step == 0)
          CHECK(still_caught(cases, narrow, broken, line));
      }
      caught += !line.caught.empty();
    }
    written.insert(written.end(), listed.begin(), listed.end());
  }
  std::printf(
      "the lack of %zu of %zu barriers is listed as caught on %s; one in %zu was looked at\n",
      caught, tried, device.capabilities().name.c_str(), writes ? 1 : step);
  if (!writes) return;
  std::ofstream out(barrier_list_file());
  out << heading << '\n';
  for (const BarrierLine& line : written) out << text_of(line) << '\n';
  std::ofstream(barrier_page_file()) << barrier_page(written);
}

TEST_CASE("docs/reference/barriers.md is the page of the list of barriers") {
  std::ifstream in(barrier_page_file());
  const std::string document{std::istreambuf_iterator<char>(in), {}};
  INFO("run: MULCIBER_BARRIERS=write MULCIBER_BARRIER_ROWS=none build/tests/conformance_tests");
  CHECK((document == barrier_page(read_barrier_list())));
}
