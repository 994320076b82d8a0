// `mulciber devices`: the devices of this machine, their capabilities, and the kernel rows that
// they use.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "apps/cli/command.h"
#include "apps/cli/progress.h"
#include "conformance/records/fingerprint.h"
#include "conformance/self_test.h"
#include "runtime/choices.h"
#include "runtime/kernel.h"
#include "runtime/op.h"
#include "runtime/spirv_modules.h"

namespace mulciber::apps {
namespace {

std::string version_text(uint32_t version) {
  return fmt::format("{}.{}.{}", VK_API_VERSION_MAJOR(version), VK_API_VERSION_MINOR(version),
                     VK_API_VERSION_PATCH(version));
}

std::string bytes_text(uint64_t bytes) {
  if (bytes >= 1ull << 30)
    return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1ull << 30));
  if (bytes >= 1ull << 20)
    return fmt::format("{:.0f} MiB", static_cast<double>(bytes) / (1ull << 20));
  return fmt::format("{} KiB", bytes >> 10);
}

// Whether selection may take a row, as far as the device decides it; the shape is checked for each
// problem.
std::string row_status(const Kernel& kernel, const Capabilities& device) {
  std::string reason = why_not_runnable(kernel, device);
  if (!reason.empty()) return reason;
  if (!device.has(kernel.made_for)) {
    return "runs here, but is made for " + describe_features(kernel.made_for & ~device.features);
  }
  return "";
}

bool denied(const Capabilities& device, const char* row) {
  return std::ranges::count(device.denied_rows, row) > 0;
}

// Verdicts of the self-test on rows that the device may choose.
struct SelfTested {
  std::vector<std::string> passed, untested;
  // Row and reason; rows with a workaround too.
  std::vector<std::pair<std::string, std::string>> denied;
};

SelfTested self_tested(const Capabilities& c) {
  SelfTested result;
  for (const Kernel* row : conformance::untested_rows(c)) result.untested.push_back(row->id);
  for (const std::string& row : c.passed_rows) {
    const Kernel* kernel = find_kernel(row);
    if (kernel && c.has(kernel->made_for) && !denied(c, kernel->id)) result.passed.push_back(row);
  }
  for (size_t i = 0; i < c.denied_rows.size(); ++i)
    result.denied.emplace_back(c.denied_rows[i], c.denied_reasons[i]);
  return result;
}

void print_self_tested(const Capabilities& c) {
  const SelfTested rows = self_tested(c);
  fmt::print("   self-test: {} rows passed, {} denied, {} not yet tested\n", rows.passed.size(),
             rows.denied.size(), rows.untested.size());
  for (const auto& [row, reason] : rows.denied) fmt::print("     denied: {}: {}\n", row, reason);
}

nlohmann::json to_json(const Capabilities& c, bool rows) {
  nlohmann::json heaps = nlohmann::json::array();
  for (const MemoryHeap& heap : c.heaps) {
    heaps.push_back({{"size", heap.size},
                     {"budget", heap.budget},
                     {"device_local", heap.device_local},
                     {"host_visible", heap.host_visible}});
  }
  nlohmann::json features = nlohmann::json::array();
  for (const FeatureName& name : feature_names()) {
    if (c.features & name.feature) features.push_back(name.name);
  }
  nlohmann::json matrices = nlohmann::json::array();
  for (const MatrixType& t : c.matrix_types) {
    matrices.push_back({{"m", t.m},
                        {"n", t.n},
                        {"k", t.k},
                        {"a", t.a},
                        {"b", t.b},
                        {"c", t.c},
                        {"result", t.result},
                        {"saturating", t.saturating},
                        {"flexible", t.flexible}});
  }
  nlohmann::json result = {{"name", c.name},
                           {"kind", name_of(c.kind)},
                           {"driver", c.driver_name},
                           {"driver_info", c.driver_info},
                           {"driver_id", static_cast<int>(c.driver_id)},
                           {"driver_version", c.driver_version},
                           {"vulkan", version_text(c.api_version)},
                           {"vendor_id", c.vendor_id},
                           {"device_id", c.device_id},
                           {"features", features},
                           {"subgroup_size", c.subgroup_size},
                           {"shared_memory", c.max_shared_memory},
                           {"invocations", c.max_invocations},
                           {"storage_range", c.max_storage_range},
                           {"storage_buffers", c.max_storage_buffers},
                           {"compute_units", c.compute_units},
                           {"heaps", heaps},
                           {"matrix_types", matrices},
                           {"limits_applied", c.applied_limits}};
  result["shaders"] = {{"glslang", describe_shader_compilers()},
                       {"spirv_hash", conformance::spirv_hash()}};
  const SelfTested tested = self_tested(c);
  nlohmann::json denials = nlohmann::json::array();
  for (const auto& [row, reason] : tested.denied)
    denials.push_back({{"row", row}, {"reason", reason}});
  result["self_test"] = {
      {"passed", tested.passed}, {"denied", denials}, {"untested", tested.untested}};
  if (!rows) return result;
  result["choices"] = c.choices;
  for (const Kernel& kernel : kernels()) {
    std::string reason = row_status(kernel, c);
    result["kernels"].push_back({{"id", kernel.id},
                                 {"op", name_of(kernel.op)},
                                 {"pinned", kernel.pinned},
                                 {"usable", reason.empty()},
                                 {"reason", reason},
                                 {"shape", describe_shape_facts(kernel.shape)}});
  }
  return result;
}

void print(size_t index, const Capabilities& c, bool rows) {
  uint64_t memory = 0;
  for (const MemoryHeap& heap : c.heaps) {
    if (heap.device_local) memory = std::max(memory, heap.size);
  }
  fmt::print("{}: {}\n", index, c.name);
  fmt::print("   {}, {} {}, Vulkan {}, {} of memory\n", name_of(c.kind), c.driver_name,
             c.driver_info, version_text(c.api_version), bytes_text(memory));
  fmt::print("   subgroup {}, {} invocations, {} shared, {} per binding, {} buffers\n",
             c.subgroup_size, c.max_invocations, bytes_text(c.max_shared_memory),
             bytes_text(c.max_storage_range), c.max_storage_buffers);
  if (c.compute_units != 0)
    fmt::print("   {} compute units\n", c.compute_units);
  else if (c.has(kGpu))
    fmt::print("   compute units not said, taken for {}\n", c.units());
  fmt::print("   {}\n", describe_features(c.features));
  if (!c.applied_limits.empty()) fmt::print("   limits: {}\n", fmt::join(c.applied_limits, ", "));
  print_self_tested(c);
  if (!rows) return;
  for (const MatrixType& t : c.matrix_types) {
    fmt::print("   matrix type {}{}x{}x{} (components {} {} -> {}{})\n",
               t.flexible ? "multiples of " : "", t.m, t.n, t.k, t.a, t.b, t.result,
               t.saturating ? ", saturating" : "");
  }
  fmt::print(
      "   kernels, best first within each op (+ passed its self-test, ? not tested yet, - not "
      "used):\n");
  for (const Kernel& kernel : kernels()) {
    std::string reason = row_status(kernel, c);
    std::string shape = kernel.shape ? " (" + describe_shape_facts(kernel.shape) + ")" : "";
    const bool passed = std::ranges::count(c.passed_rows, kernel.id) > 0;
    fmt::print("     {} {}{}{}\n",
               !reason.empty() ? "-"
               : passed        ? "+"
                               : "?",
               kernel.id, shape, reason.empty() ? "" : ": " + reason);
  }
}

// Prints rows chosen by measurement, with the times of all candidates.
void print_measured(const Capabilities& device, const std::string& cache_folder) {
  if (device.choices.empty()) return;
  fmt::print("   chosen by measurement (`mulciber tune`), milliseconds:\n");
  const Choices choices(device, cache_folder);
  for (const auto& [key, choice] : choices.all()) {
    if (!device.choices.contains(key)) continue;
    std::vector<std::string> times;
    for (const auto& [row, time] : choice.milliseconds)
      times.push_back(fmt::format("{} {:.4f}", row, time));
    fmt::print("     {}: {} ({})\n", key, choice.row, fmt::join(times, ", "));
  }
}

// Prints for each op and storage type the row that selection takes at the shapes of `mulciber
// bench`.
void print_choices(const Capabilities& device) {
  fmt::print("   what serves which shape:\n");
  for (Op op : kAllOps) {
    const conformance::OpCases& cases = conformance::op_cases(op);
    std::set<std::pair<DataType, DataType>> types;
    for (const Kernel& kernel : kernels()) {
      if (kernel.op != op) continue;
      for (const KernelTypes& served : concrete_types(kernel.types))
        types.insert({served.activation, served.weight});
    }
    for (const auto& [activation, weight] : types) {
      std::map<std::string, std::vector<std::string>> shapes_by_row;
      for (const auto& shape : cases.bench_shapes()) {
        if (shape.back() % block_elements(weight) != 0) continue;  // not whole blocks in a row
        conformance::OpCase op_case = cases.make(shape, {activation, weight});
        const Kernel* row = conformance::chosen_row(device, op_case, op);
        shapes_by_row[row ? row->id : "none"].push_back(fmt::format("{}", fmt::join(shape, ",")));
      }
      for (const auto& [row, shapes] : shapes_by_row) {
        fmt::print("     {} ({}) {}, {}: {} for {}\n", name_of(op), cases.shape_format(),
                   name_of(activation), name_of(weight), row, fmt::join(shapes, " "));
      }
    }
  }
}

// Tests all rows that each device may choose, whatever their verdicts so far. Returns how many
// failed.
size_t test_devices(const DeviceOptions& given, size_t count) {
  size_t failed = 0;
  for (size_t i = 0; i < count; ++i) {
    DeviceOptions device_options = given;
    device_options.device = std::to_string(i);
    conformance::SelfTestOptions options;
    options.again = true;
    options.seconds = std::numeric_limits<double>::infinity();
    options.cancelled = interrupted;
    Progress progress(fmt::format("self-test of device {}", i), 0);
    options.progress = [&](const Kernel&, size_t done, size_t) { progress.update(done); };
    const conformance::SelfTestReport report = conformance::self_test(device_options, options);
    progress.finish();
    fmt::print(
        stderr,
        "self-test of device {}: {} rows passed, {} failed, {} could not be tested, {:.1f} s{}\n",
        i, report.passed, report.failures.size(), report.untested, report.seconds,
        report.kept ? "" : " (not kept: no folder to write to, see MULCIBER_CACHE)");
    failed += report.failures.size();
  }
  return failed;
}

}  // namespace

void add_devices(Command& app, int& code) {
  auto options = std::make_shared<CommonOptions>();
  Command command = app.add_subcommand(
      "devices", "What Vulkan devices are here, best first, and what they can do");
  take_environment(command, *options);
  command.add_option("--limits", options->device_options.limits,
                     "show the devices as under these limits");
  command.add_flag("--json", options->json, "machine-readable output");
  command.add_flag("-v,--verbose", options->verbose,
                   "also every kernel row, and why a row is not used");
  auto table = std::make_shared<bool>(false);
  command.add_flag("--kernels", *table,
                   "print the table of kernel rows as Markdown (docs/reference/kernels.md)");
  auto test = std::make_shared<bool>(false);
  command.add_flag("--self-test", *test,
                   "test every kernel row that a device may choose, also those tested before; "
                   "exit code 1 when one fails");
  std::string known;
  for (const auto& [word, help] : known_limits()) known += fmt::format("\n  {:<22}{}", word, help);
  command.footer("Limits:" + known +
                 "\n\nRows are tested when a driver version is first used; MULCIBER_SELF_TEST=0 "
                 "leaves that out."
                 "\n\nExample: mulciber devices -v --limits android-2021");
  command.callback([options, table, test, &code] {
    code = kSuccess;
    if (*table) {
      fmt::print("{}", kernel_table_markdown());
      return;
    }
    std::vector<Capabilities> devices = Device::enumerate(options->device_options);
    if (*test) {
      if (test_devices(options->device_options, devices.size()) > 0) code = kOverTolerance;
      devices = Device::enumerate(options->device_options);
    }
    if (options->json) {
      nlohmann::json list = nlohmann::json::array();
      for (const Capabilities& c : devices) list.push_back(to_json(c, options->verbose));
      fmt::print("{}\n", list.dump(2));
    } else {
      if (options->verbose) fmt::print("shaders: {}\n", conformance::describe_shaders());
      for (size_t i = 0; i < devices.size(); ++i) {
        print(i, devices[i], options->verbose);
        if (!options->verbose) continue;
        print_measured(devices[i], options->device_options.cache_folder);
        print_choices(devices[i]);
      }
    }
  });
}

}  // namespace mulciber::apps
