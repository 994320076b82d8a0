#include "conformance/time_case.h"

#include <algorithm>

#include "base/clock.h"
#include "conformance/case_program.h"

namespace mulciber::conformance {
namespace {

/// The bytes of a large input: a few random rows, repeated. The time of a kernel does not depend on
/// them, and drawing the weights of a large model would take longer than multiplying.
CpuTensor repeated(const CaseInput& input) {
  constexpr uint64_t kDrawn = 1u << 16;
  const uint64_t columns = input.shape.columns();
  const uint64_t rows = std::clamp<uint64_t>(kDrawn / columns, 1, input.shape.rows());
  OpCase part;
  part.inputs = {normal_input({rows, columns}, input.type)};
  const std::vector<std::byte> drawn = to_bytes(draw_inputs(part, 0).front());
  const size_t row = drawn.size() / rows;
  CpuTensor tensor{input.shape, input.type};
  tensor.bytes.resize(row * input.shape.rows());
  for (size_t at = 0; at < tensor.bytes.size(); at += drawn.size()) {
    std::copy_n(drawn.begin(), std::min(drawn.size(), tensor.bytes.size() - at),
                tensor.bytes.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return tensor;
}

bool large(const CaseInput& input) {
  constexpr uint64_t kElements = 1u << 20;
  return input.type != DataType::kU32 && input.shape.elements() > kElements;
}

std::vector<CpuTensor> timing_inputs(const OpCase& op_case) {
  OpCase small = op_case;
  std::erase_if(small.inputs, large);
  std::vector<CpuTensor> drawn = draw_inputs(small, 0), inputs;
  auto next = drawn.begin();
  for (const CaseInput& input : op_case.inputs)
    inputs.push_back(large(input) ? repeated(input) : std::move(*next++));
  return inputs;
}

}  // namespace

Timing time_case(Device& device, const OpCase& op_case, const Kernel& row, double min_seconds) {
  // On hardware several copies of the case alternate, so that weights do not stay in the last-level
  // cache.
  const bool hardware = device.capabilities().has(kGpu);
  uint64_t input_bytes = 1;
  for (const CaseInput& input : op_case.inputs) {
    input_bytes += input.shape.rows() * row_bytes(input.type, input.shape.columns());
  }
  const size_t copies = hardware ? std::clamp<size_t>((256u << 20) / input_bytes, 1, 8) : 1;
  const std::vector<CpuTensor> inputs = timing_inputs(op_case);
  std::vector<std::unique_ptr<CaseProgram>> programs;
  bool slow = false;  // one run is longer than the time for all samples: a few suffice
  while (programs.size() < copies && !slow) {
    programs.push_back(std::make_unique<CaseProgram>(device, op_case, &row));
    programs.back()->fill(inputs);
    for (int warm = 0; warm < 2 && !slow; ++warm) {
      const auto once = Clock::now();
      programs.back()->program().run();
      slow = warm == 1 && seconds_since(once) > min_seconds;
    }
  }

  Timing timing;
  timing.work = programs[0]->program().work();
  timing.dispatches = static_cast<uint32_t>(programs[0]->program().nodes().size());
  std::vector<double> samples;
  const auto begin = Clock::now();
  if (hardware && device.capabilities().timestamp_period > 0) {
    const auto wanted = [&] {
      const double elapsed = seconds_since(begin);
      if (slow && !samples.empty() && elapsed > 10 * min_seconds) return false;
      return samples.size() < 20 || elapsed < min_seconds;
    };
    for (size_t i = 0; wanted(); ++i) {
      Program& program = programs[i % programs.size()]->program();
      program.run();
      samples.push_back(program.last_ms());
    }
  } else {
    // Software drivers have no useful timestamps: many consecutive replays are timed by the CPU's
    // clock.
    Program& program = programs[0]->program();
    auto once = Clock::now();
    program.run();
    const size_t replays = std::clamp<size_t>(
        static_cast<size_t>(min_seconds / 20 / std::max(1e-6, seconds_since(once))), 1, 2000);
    while (samples.size() < 7 || seconds_since(begin) < min_seconds) {
      auto start = Clock::now();
      Ticket ticket = 0;
      for (size_t i = 0; i < replays; ++i) ticket = program.submit();
      device.wait(ticket);
      samples.push_back(seconds_since(start) * 1000 / static_cast<double>(replays));
    }
  }
  std::sort(samples.begin(), samples.end());
  timing.median_ms = samples[samples.size() / 2];
  timing.spread_ms = samples[samples.size() * 3 / 4] - samples[samples.size() / 4];
  return timing;
}

}  // namespace mulciber::conformance
