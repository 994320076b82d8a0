// Selection: the reasons why a row cannot serve, and the first row that can.
#include <fmt/format.h>

#include <algorithm>

#include "mulciber/error.h"
#include "runtime/choices.h"
#include "runtime/kernel.h"
#include "runtime/row_subgroups.h"

namespace mulciber {

namespace {

uint32_t lanes_of(const Kernel& kernel, const Capabilities& device) {
  return kernel.find(RowConstant::PLAIN_LANES).value_or(device.subgroup_size);
}

/// Why a workgroup of the device has fewer subgroups than share the row's tile, or "".
std::string why_too_few_subgroups(const Kernel& kernel, const Capabilities& device) {
  const uint32_t least = least_subgroups(kernel.constants);
  if (least == 0) return "";
  const uint32_t size = local_size(kernel, device), lanes = lanes_of(kernel, device);
  if (lanes != 0 && size / lanes >= least) return "";
  return fmt::format("needs {} subgroups of a workgroup's {} invocations, the device's have {}",
                     least, size, lanes);
}

}  // namespace

uint32_t local_size(const Kernel& kernel, const Capabilities& device) {
  const uint32_t size = kernel.constant(RowConstant::LOCAL_SIZE);
  if (const std::optional<uint32_t> most = kernel.find(RowConstant::MOST_SUBGROUPS))
    return std::min(size, *most * lanes_of(kernel, device));
  return size == 0 ? device.subgroup_size : size;
}

std::string why_not_runnable(const Kernel& kernel, const Capabilities& device) {
  if (kernel.spirv.empty())
    return "not in this build: it was told to leave out what its shader compiler cannot make";
  for (size_t i = 0; i < device.denied_rows.size(); ++i) {
    if (device.denied_rows[i] == kernel.id)
      return "denied on this driver: " + device.denied_reasons[i];
  }
  if (FeatureSet missing = kernel.needs & ~device.features) {
    return "the device lacks " + describe_features(missing);
  }
  if (uint32_t size = local_size(kernel, device);
      size > device.max_invocations || size > device.max_local_size) {
    return fmt::format("needs {} invocations per workgroup, the device has {}", size,
                       std::min(device.max_invocations, device.max_local_size));
  }
  if (std::string reason = why_too_few_subgroups(kernel, device); !reason.empty()) return reason;
  if (kernel.reflection.shared_memory_bytes > device.max_shared_memory) {
    return fmt::format("needs {} bytes of shared memory, the device has {}",
                       kernel.reflection.shared_memory_bytes, device.max_shared_memory);
  }
  if (!kernel.reflection.buffer_address &&
      kernel.reflection.buffer_count > device.max_storage_buffers) {
    return fmt::format("binds {} storage buffers, the device has {}",
                       kernel.reflection.buffer_count, device.max_storage_buffers);
  }
  if (kernel.reflection.push_constant_bytes > device.max_push_constants) {
    return fmt::format("needs {} bytes of push constants, the device has {}",
                       kernel.reflection.push_constant_bytes, device.max_push_constants);
  }
  return "";
}

std::string why_not(const Kernel& kernel, const Capabilities& device, const Problem& problem) {
  if (!serves(kernel.types, problem.types)) {
    return fmt::format("is for {} activations with {} weights", name_of(kernel.types.activation),
                       name_of(kernel.types.weight));
  }
  if (ShapeFacts missing = kernel.shape & ~problem.facts) {
    return "needs " + describe_shape_facts(missing);
  }
  return why_not_runnable(kernel, device);
}

namespace {

bool has_passed(const Kernel& kernel, const Capabilities& device) {
  return std::ranges::count(device.passed_rows, kernel.id) > 0;
}

/// The row that measurement chose, or null where no such row still serves.
const Kernel* measured_choice(const Capabilities& device, const Problem& problem) {
  if (device.choices.empty() || problem.extents.empty()) return nullptr;
  const auto choice = device.choices.find(choice_key(problem));
  const Kernel* row = choice == device.choices.end() ? nullptr : find_kernel(choice->second);
  if (row == nullptr || !device.has(row->made_for)) return nullptr;
  const bool tested = device.passed_rows.empty() || has_passed(*row, device);
  return tested && why_not(*row, device, problem).empty() ? row : nullptr;
}

}  // namespace

Selection select_kernel(const Capabilities& device, const Problem& problem) {
  Selection selection;
  if (const Kernel* chosen = measured_choice(device, problem)) {
    selection.kernel = chosen;
    return selection;
  }
  const Kernel* untested = nullptr;  // the best row without a verdict
  size_t better_than_untested = 0;
  for (const Kernel& kernel : kernels()) {
    if (kernel.op != problem.op) continue;
    std::string reason = why_not(kernel, device, problem);
    if (reason.empty() && !device.has(kernel.made_for)) {
      reason = "is made for " + describe_features(kernel.made_for & ~device.features);
    }
    // If no row was tested (the self-test is off, or the suite runs) the first one serves.
    if (reason.empty() && (device.passed_rows.empty() || has_passed(kernel, device))) {
      selection.kernel = &kernel;
      return selection;
    }
    if (reason.empty()) {
      if (!untested) {
        untested = &kernel;
        better_than_untested = selection.passed_over.size();
      }
      reason = "is not yet tested on this driver";
    }
    selection.passed_over.push_back({&kernel, std::move(reason)});
  }
  if (untested) {
    selection.passed_over.erase(
        selection.passed_over.begin() + static_cast<ptrdiff_t>(better_than_untested),
        selection.passed_over.end());
    selection.kernel = untested;
  }
  return selection;
}

const Kernel& require_kernel(const Capabilities& device, const Problem& problem) {
  Selection selection = select_kernel(device, problem);
  if (selection.kernel) return *selection.kernel;
  std::string reasons;
  for (const Refusal& refusal : selection.passed_over) {
    reasons += fmt::format("\n  {}: {}", refusal.kernel->id, refusal.reason);
  }
  throw KernelError(name_of(problem.op),
                    fmt::format("no kernel serves {} activations with {} weights on {}:{}",
                                name_of(problem.types.activation), name_of(problem.types.weight),
                                device.name, reasons),
                    "take fewer capabilities away, or use another storage type");
}

}  // namespace mulciber
