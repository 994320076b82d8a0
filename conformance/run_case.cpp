#include "conformance/run_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "base/clock.h"
#include "conformance/case_program.h"
#include "conformance/compare.h"

namespace mulciber::conformance {
namespace {

constexpr uint64_t kGuardBytes = 256;

using Bytes = std::vector<std::vector<std::byte>>;

void flip(Device& device, const BufferView& view) {
  BufferView word = view;
  word.size = 4;
  std::vector<std::byte> bytes = download(device, word);
  bytes[0] ^= std::byte{0x40};
  bytes[1] ^= std::byte{0x40};
  upload(device, word, bytes);
}

// Makes a buffer without a usage, which drivers tolerate.
void misuse(Device& device) {
  VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
  info.size = 16;
  VkBuffer buffer = VK_NULL_HANDLE;
  if (device.vk().vkCreateBuffer(device.handle(), &info, nullptr, &buffer) != VK_SUCCESS) return;
  device.vk().vkDestroyBuffer(device.handle(), buffer, nullptr);
}

// Results of a case in another order.
struct Reordered {
  Order order;
  Bytes results;
  std::vector<Tensor> outputs;
};

Reordered run_in_order(Device& device, const OpCase& op_case, const Kernel* row,
                       const RunOptions& options, const std::vector<CpuTensor>& inputs,
                       const Order& order) {
  const OrderScope scope(device, order);
  CaseProgram program(device, op_case, row, Placement{kGuardBytes, options.seed + 1});
  program.fill(inputs);
  program.program().run();
  if (options.fault == Fault::kOrder) flip(device, program.output_view(0));
  return {order, program.read_outputs(), program.outputs()};
}

void compare_orders(CaseResult& result, const std::vector<Reordered>& reordered, const Bytes& own,
                    const OpCase& op_case, const Kernel* row) {
  for (const Reordered& other : reordered) {
    result.orders.push_back(name_of(other.order));
    const std::string difference = order_difference(other.outputs, other.order, other.results, own);
    if (difference.empty()) continue;
    result.status = Status::kFlaky;
    result.detail =
        fmt::format("{} of {}: {}", op_case.name, row ? row->id : "the chosen rows", difference);
    return;
  }
}

CaseResult judge(Device& device, const OpCase& op_case, const Kernel* row,
                 const RunOptions& options, double tolerance) {
  if (row) {
    if (!serves(row->types, op_case.types)) return {Status::kNotSupported, "other storage types"};
    std::string reason = why_not_runnable(*row, device.capabilities());
    if (!reason.empty()) return {Status::kNotSupported, reason};
  }
  const std::vector<CpuTensor> inputs = draw_inputs(op_case, options.seed);
  const std::vector<CpuTensor> expected =
      op_case.reference(inputs, arithmetic_of(row, device.capabilities()));
  if (!op_case.degenerate) {
    if (std::string doubt = why_mistrusted(inputs, expected); !doubt.empty())
      return {Status::kMistrusted, doubt};
  }
  if (op_case.exact) {
    if (std::string inexact = why_inexact(expected); !inexact.empty())
      return {Status::kInternalError, inexact};
  }
  // Numbers that may be flushed to zero have no usual error.
  Quality quality = op_case.subnormal ? Quality{} : quality_of(row);
  if (tolerance > 0) quality.row_error = tolerance;

  // Other orders run first, while shared memory holds values of other cases: this case's own
  // earlier values could hide a missing barrier.
  std::vector<Reordered> reordered;
  for (const Order& order : options.orders)
    reordered.push_back(run_in_order(device, op_case, row, options, inputs, order));

  CaseResult result;
  Bytes first;
  // The last run uses a program recorded anew, with its buffers elsewhere.
  const uint32_t runs = std::max(1u, options.repeats) + 1;
  std::unique_ptr<CaseProgram> program;
  for (uint32_t run = 0; run < runs; ++run) {
    if (run == 0 || run + 1 == runs) {
      program.reset();
      program = std::make_unique<CaseProgram>(device, op_case, row,
                                              Placement{kGuardBytes, options.seed + 1 + run});
    }
    program->fill(inputs);
    program->program().run();
    if (options.fault != Fault::kNone) {
      inject(options.fault, device,
             {[&] { flip(device, program->output_view(0)); },
              [&] { flip(device, program->guard_view()); }},
             run + 1 == runs);
    }
    Bytes got = program->read_outputs();
    if (run == 0) {
      if (got.size() != expected.size()) {
        return {Status::kInternalError,
                fmt::format("{} outputs, the reference gives {}", got.size(), expected.size())};
      }
      for (size_t i = 0; i < got.size(); ++i) {
        const Tensor& output = program->outputs()[i];
        if (output.shape.elements() != expected[i].shape.elements() ||
            output.type != expected[i].type) {
          return {Status::kInternalError,
                  fmt::format("output {} is {} {}, the reference gives {} {}", i,
                              name_of(output.type), output.shape.to_string(),
                              name_of(expected[i].type), expected[i].shape.to_string())};
        }
      }
      const Comparison comparison = compare(got, expected, quality);
      result.worst_error = comparison.worst;
      result.nmse = comparison.nmse;
      result.detail = comparison.detail;
      result.status = comparison.status;
      first = std::move(got);
    } else if (got != first) {
      result.status = Status::kFlaky;
      size_t output = 0;
      while (got[output] == first[output]) ++output;
      result.detail = fmt::format(
          "output {} of run {} of {} has other bits than that of the first{}", output, run + 1,
          runs, run + 1 == runs ? " (from a new recording, buffers elsewhere)" : "");
    }
    ++result.repeats;
    if (run == 0 || run + 1 == runs) {
      if (std::string damage = program->damage(); !damage.empty()) {
        result.status = Status::kFail;
        result.detail = damage;
      }
    }
    if (result.status != Status::kPass && result.status != Status::kQualityWarning) return result;
  }
  compare_orders(result, reordered, first, op_case, row);
  return result;
}

}  // namespace

void inject(Fault fault, Device& device, const FaultTargets& targets, bool last_run) {
  const auto strike = [](const std::function<void()>& target) {
    if (target) target();
  };
  switch (fault) {
    case Fault::kNone: break;
    case Fault::kCrash: std::abort();
    case Fault::kHang: std::this_thread::sleep_for(std::chrono::hours(24)); break;
    case Fault::kCorrupt: strike(targets.corrupt); break;
    case Fault::kFlaky:
      if (last_run) strike(targets.corrupt);
      break;
    case Fault::kOrder: break;  // strikes elsewhere
    case Fault::kWriteOutside: strike(targets.write_outside); break;
    case Fault::kLoseDevice: device.check(VK_ERROR_DEVICE_LOST, "fault injection"); break;
    case Fault::kMisuse: misuse(device);
  }
}

CaseResult guarded(const std::function<CaseResult()>& body) {
  const auto start = Clock::now();
  CaseResult result;
  try {
    result = body();
  } catch (const DeviceError& error) {
    const bool memory = error.kind() == DeviceError::Kind::kOutOfMemory;
    const bool lost = error.kind() == DeviceError::Kind::kLost;
    result = {memory ? Status::kResourceError
              : lost ? Status::kDeviceLost
                     : Status::kInternalError,
              error.what()};
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    result = {Status::kInternalError, error.what()};
  }
  result.seconds = seconds_since(start);
  return result;
}

CaseResult run_case(Device& device, const OpCase& op_case, const Kernel* row,
                    const RunOptions& options, double tolerance) {
  return guarded([&]() -> CaseResult {
    try {
      return judge(device, op_case, row, options, tolerance);
    } catch (const KernelError& error) {
      return {Status::kNotSupported, error.problem()};
    } catch (const ShapeError& error) {
      return {Status::kNotSupported, error.problem()};
    }
  });
}

}  // namespace mulciber::conformance
