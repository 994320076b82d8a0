// The suite tests itself: kernels broken on purpose (tests/mutants/mutants.txt) must not pass it.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <list>
#include <map>

#include "conformance/run_case.h"
#include "runtime/spirv_reflection.h"
#include "tests/catch.h"
#include "tests/device.h"
#include "tests/mutants/mutants.h"
#include "tests/support.h"

using namespace mulciber;
using namespace mulciber::conformance;

namespace {

// Every run after the first has memory and offsets of its own: enough to tell a fault from noise.
const RunOptions kOptions{.repeats = 4};

// The cases that a row serves, small ones first: they are enough for most faults.
const std::vector<OpCase>& cases_of(const Kernel& row) {
  static std::map<const Kernel*, std::vector<OpCase>> known;
  auto [entry, added] = known.try_emplace(&row);
  if (added) {
    for (OpCase& c : op_cases(row.op).samples(row.types)) {
      if (suits(row, c)) entry->second.push_back(std::move(c));
    }
    auto size = [](const OpCase& c) {
      uint64_t elements = 0;
      for (const CaseInput& input : c.inputs) elements += input.shape.elements();
      return elements;
    };
    std::stable_sort(entry->second.begin(), entry->second.end(),
                     [&](const OpCase& a, const OpCase& b) { return size(a) < size(b); });
  }
  return entry->second;
}

bool wrong(const CaseResult& result) {
  return result.status == Status::kFail || result.status == Status::kFlaky ||
         result.status == Status::kDeviceLost;
}

}  // namespace

TEST_CASE("Every mutant of a kernel is caught by a case that the kernel passes") {
  if (tests::mutants().empty()) MULCIBER_SKIP("there is no glslang to compile the mutants with");
  Device& device = tests::shared_device();
  // The device finds pipelines by the address of their kernel, and keeps them as long as it lives.
  static std::list<Kernel> broken_kernels;
  std::map<const Kernel*, size_t> passed;  // how many of its first cases a row has passed
  size_t caught = 0, flaky = 0;
  const std::vector<tests::Mutant> taken = tests::share_of(tests::mutants());
  for (const tests::Mutant& mutant : taken) {
    if (mutant.spirv.empty()) continue;
    INFO(mutant.name << " of " << mutant.row << ", which imitates " << mutant.imitates);
    const Kernel* row = find_kernel(mutant.row);
    REQUIRE(row);
    // The changed lines are not dead code in this row.
    CHECK_FALSE(std::ranges::equal(mutant.spirv, row->spirv));
    if (std::string reason = why_not_runnable(*row, device.capabilities()); !reason.empty()) {
      std::printf("  %-36s skipped: %s\n", mutant.name, reason.c_str());
      continue;
    }
    const auto start = std::chrono::steady_clock::now();
    Kernel& broken = broken_kernels.emplace_back(*row);
    broken.spirv = mutant.spirv;
    broken.reflection = reflect_spirv(mutant.name, mutant.spirv);
    bool found = false;
    const std::vector<OpCase>& cases = cases_of(*row);
    for (size_t i = 0; i < cases.size() && !found; ++i) {
      const CaseResult result = run_case(device, cases[i], &broken, kOptions);
      found = wrong(result);
      if (!found) continue;
      flaky += result.status == Status::kFlaky;
      const double seconds =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      std::printf("  %-36s %s by %s after %.1f s: %s\n", mutant.name, name_of(result.status),
                  cases[i].name.c_str(), seconds, result.detail.c_str());
      // A case that the kernel itself fails tells nothing.
      for (size_t& seen = passed[row]; seen <= i; ++seen) {
        const CaseResult own = run_case(device, cases[seen], row, kOptions);
        INFO(cases[seen].name << ": " << own.detail);
        CHECK(is_good(own.status));
      }
    }
    const std::string unseen = mutant.unseen, device_name = device.capabilities().name;
    if (!found && !unseen.empty() && device_name.starts_with(unseen.substr(0, unseen.find(',')))) {
      std::printf("  %-36s has no effect on %s\n", mutant.name, mutant.unseen);
      continue;
    }
    CHECK(found);
    caught += found;
  }
  std::printf("%zu of %zu mutants caught on %s\n", caught, taken.size(),
              device.capabilities().name.c_str());
  CHECK(caught >= 12);
  // Some faults give right numbers that differ between runs: the one here reads an address.
  const bool all = taken.size() == tests::mutants().size();
  CHECK((!all || flaky > 0 || !device.capabilities().has(kBufferAddress)));
}

TEST_CASE("The build's glslang compiles every mutant") {
  std::string missing;
  for (const tests::Mutant& mutant : tests::mutants()) {
    if (mutant.spirv.empty()) missing += fmt::format(" {} of {}", mutant.name, mutant.row);
  }
  // The rows of the missing mutants run on Mesa 26.1, beside a newer glslang: the part
  // debian-testing of ./test.sh.
  if (!missing.empty()) MULCIBER_SKIP("too old for" + missing);
}
