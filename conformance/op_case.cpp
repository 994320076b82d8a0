#include "conformance/op_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <glm/gtc/packing.hpp>

namespace mulciber::conformance {
namespace {

std::vector<std::byte> to_bytes(const HostTensor& tensor) {
  std::vector<std::byte> bytes(tensor.values.size() * size_of(tensor.type));
  for (size_t i = 0; i < tensor.values.size(); ++i) {
    if (tensor.type == DataType::kF16) {
      uint16_t half = glm::packHalf1x16(static_cast<float>(tensor.values[i]));
      std::memcpy(bytes.data() + 2 * i, &half, 2);
    } else {
      uint32_t word = tensor.type == DataType::kU32 ? static_cast<uint32_t>(tensor.values[i])
                                                    : bits_of(static_cast<float>(tensor.values[i]));
      std::memcpy(bytes.data() + 4 * i, &word, 4);
    }
  }
  return bytes;
}

double value_at(const std::vector<std::byte>& bytes, DataType type, size_t index) {
  if (type == DataType::kF16) {
    uint16_t half;
    std::memcpy(&half, bytes.data() + 2 * index, 2);
    return glm::unpackHalf1x16(half);
  }
  uint32_t word;
  std::memcpy(&word, bytes.data() + 4 * index, 4);
  return type == DataType::kU32 ? static_cast<double>(word) : std::bit_cast<float>(word);
}

// A program over one case, with device buffers for its inputs.
struct Bench {
  std::vector<Buffer> buffers;
  std::vector<Tensor> outputs;
  std::unique_ptr<Program> program;

  Bench(Device& device, const OpCase& op_case, const Kernel& row) {
    std::vector<Tensor> inputs;
    for (const HostTensor& input : op_case.inputs) {
      uint64_t bytes = std::max<uint64_t>(4, input.values.size() * size_of(input.type));
      buffers.push_back(device.memory().allocate(bytes, MemoryUse::kDevice));
      Tensor tensor;
      tensor.shape = input.shape;
      tensor.type = input.type;
      tensor.view = buffers.back().view();
      inputs.push_back(tensor);
    }
    ProgramBuilder builder(device, op_case.name);
    builder.force(row);
    outputs = op_case.build(builder, inputs);
    for (const Tensor& output : outputs) builder.keep(output);
    program = std::make_unique<Program>(builder.build());
  }

  void fill(Device& device, const OpCase& op_case) {
    Uploader uploader(device);
    for (size_t i = 0; i < buffers.size(); ++i) uploader.copy(buffers[i].view(), to_bytes(op_case.inputs[i]));
    // All ones is NaN as f32 and as f16, and an impossible index as u32.
    std::vector<std::byte> poison(program->arena().size, std::byte{0xff});
    uploader.copy(program->arena(), poison);
    uploader.finish();
  }

  std::vector<std::vector<std::byte>> run(Device& device, const OpCase& op_case) {
    fill(device, op_case);
    program->run();
    std::vector<std::vector<std::byte>> results;
    for (const Tensor& output : outputs) results.push_back(download(device, program->view(output)));
    return results;
  }
};

// Compares one output row by row; keeps the worst in `result`.
void compare(const std::vector<std::byte>& bytes, const Tensor& output, const HostTensor& expected,
             double tolerance, size_t output_index, CaseResult& result, double& error_sum, double& square_sum) {
  const size_t columns = std::max<uint64_t>(1, expected.shape.columns());
  double total_square = 0;
  for (double v : expected.values) {
    if (std::isfinite(v)) total_square += v * v;
  }
  const double tensor_rms = std::sqrt(total_square / std::max<size_t>(1, expected.values.size()));
  for (size_t row = 0; row * columns < expected.values.size(); ++row) {
    double error = 0, square = 0, worst = -1;
    size_t worst_at = 0;
    for (size_t c = 0; c < columns; ++c) {
      size_t i = row * columns + c;
      double want = expected.values[i], got = value_at(bytes, output.type, i);
      double difference;
      if (output.type == DataType::kU32 || !std::isfinite(want)) {
        bool same = want == got || (std::isnan(want) && std::isnan(got));
        difference = same ? 0 : INFINITY;
      } else {
        difference = std::isnan(got) ? INFINITY : std::fabs(got - want);
        square += want * want;
      }
      error += difference * difference;
      if (difference > worst) {
        worst = difference;
        worst_at = i;
      }
    }
    error_sum += error;
    square_sum += square;
    // A row of (nearly) zeros is held to the scale of its tensor, reduced a million times.
    double scale = std::max(std::sqrt(square / columns), 1e-6 * tensor_rms);
    double relative = error == 0 ? 0 : std::sqrt(error / columns) / std::max(scale, 1e-30);
    double over = relative / tolerance;
    if (over > result.worst_error) {
      result.worst_error = over;
      result.detail = fmt::format("output {} row {} column {}: {:.9g}, expected {:.9g} (row error {:.3g}, allowed {:.3g})",
                                  output_index, row, worst_at % columns,
                                  value_at(bytes, output.type, worst_at), expected.values[worst_at], relative,
                                  tolerance);
    }
  }
}

}  // namespace

double round_to(DataType type, double value) {
  switch (type) {
    case DataType::kF16: return glm::unpackHalf1x16(glm::packHalf1x16(static_cast<float>(value)));
    case DataType::kF32: return static_cast<float>(value);
    case DataType::kU32: return static_cast<double>(static_cast<uint32_t>(value));
  }
  return value;
}

HostTensor random_tensor(Shape shape, DataType type, std::mt19937& random, double deviation) {
  HostTensor tensor{shape, type, std::vector<double>(shape.elements())};
  std::normal_distribution<double> normal(0, deviation);
  for (double& value : tensor.values) value = round_to(type, normal(random));
  return tensor;
}

HostTensor u32_tensor(std::vector<uint32_t> words) {
  return {Shape{words.size()}, DataType::kU32, std::vector<double>(words.begin(), words.end())};
}

uint32_t bits_of(float value) { return std::bit_cast<uint32_t>(value); }

const OpCases& op_cases(Op op) {
  for (const OpCases* cases : all_op_cases()) {
    if (cases->op() == op) return *cases;
  }
  throw KernelError(name_of(op), "has no cases", "");
}

const Kernel* chosen_row(Device& device, const OpCase& op_case, Op op) {
  // Building without recording costs no memory and no pipeline: inputs stand in an arena never made.
  ProgramBuilder builder(device, "choice");
  std::vector<Tensor> inputs;
  for (const HostTensor& input : op_case.inputs) inputs.push_back(builder.activation(input.shape, input.type));
  try {
    op_case.build(builder, inputs);
  } catch (const KernelError&) {
    return nullptr;
  }
  for (const Node& node : builder.nodes()) {
    if (node.kernel->op == op) return node.kernel;
  }
  return nullptr;
}

CaseResult run_case(Device& device, const OpCase& op_case, const Kernel& row) {
  CaseResult result;
  if (row.types != op_case.types) {
    return {Verdict::kNotSupported, "other storage types"};
  }
  std::string reason = why_not_runnable(row, device.capabilities());
  if (!reason.empty()) return {Verdict::kNotSupported, reason};

  std::unique_ptr<Bench> bench;
  try {
    bench = std::make_unique<Bench>(device, op_case, row);
  } catch (const KernelError& error) {
    return {Verdict::kNotSupported, error.problem()};
  }
  std::vector<HostTensor> expected = op_case.reference(op_case.inputs);
  if (expected.size() != bench->outputs.size()) {
    return {Verdict::kFail, fmt::format("{} outputs, the reference gives {}", bench->outputs.size(), expected.size())};
  }
  auto first = bench->run(device, op_case);
  auto second = bench->run(device, op_case);
  double error_sum = 0, square_sum = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    if (bench->outputs[i].shape.elements() != expected[i].shape.elements()) {
      return {Verdict::kFail, fmt::format("output {} is {}, expected {}", i, bench->outputs[i].shape.to_string(),
                                          expected[i].shape.to_string())};
    }
    compare(first[i], bench->outputs[i], expected[i], row.tolerance, i, result, error_sum, square_sum);
    if (first[i] != second[i]) return {Verdict::kFail, fmt::format("output {} differs from run to run", i), INFINITY};
  }
  result.nmse = square_sum > 0 ? error_sum / square_sum : 0;
  result.verdict = result.worst_error <= 1 ? Verdict::kPass : Verdict::kFail;
  return result;
}

Timing time_case(Device& device, const OpCase& op_case, const Kernel& row, double min_seconds) {
  using Clock = std::chrono::steady_clock;
  // On hardware several copies of the case take turns, so that weights do not stay in the last-level cache.
  const bool hardware = device.capabilities().has(kGpu);
  uint64_t input_bytes = 1;
  for (const HostTensor& input : op_case.inputs) input_bytes += input.values.size() * size_of(input.type);
  const size_t copies = hardware ? std::clamp<size_t>((256u << 20) / input_bytes, 1, 8) : 1;
  std::vector<std::unique_ptr<Bench>> benches;
  for (size_t i = 0; i < copies; ++i) {
    benches.push_back(std::make_unique<Bench>(device, op_case, row));
    benches.back()->fill(device, op_case);
    for (int warm = 0; warm < 2; ++warm) benches.back()->program->run();
  }

  Timing timing;
  timing.work = benches[0]->program->work();
  timing.dispatches = static_cast<uint32_t>(benches[0]->program->nodes().size());
  std::vector<double> samples;
  const auto begin = Clock::now();
  auto elapsed = [&](Clock::time_point since) {
    return std::chrono::duration<double>(Clock::now() - since).count();
  };
  if (hardware && device.capabilities().timestamp_period > 0) {
    for (size_t i = 0; samples.size() < 20 || elapsed(begin) < min_seconds; ++i) {
      Program& program = *benches[i % copies]->program;
      program.run();
      samples.push_back(program.last_ms());
    }
  } else {
    // Software drivers have no useful timestamps: many replays in a row, against the host's clock.
    Program& program = *benches[0]->program;
    auto once = Clock::now();
    program.run();
    const size_t replays = std::clamp<size_t>(static_cast<size_t>(min_seconds / 20 / std::max(1e-6, elapsed(once))), 1, 2000);
    while (samples.size() < 7 || elapsed(begin) < min_seconds) {
      auto start = Clock::now();
      Ticket ticket = 0;
      for (size_t i = 0; i < replays; ++i) ticket = program.submit();
      device.wait(ticket);
      samples.push_back(elapsed(start) * 1000 / static_cast<double>(replays));
    }
  }
  std::sort(samples.begin(), samples.end());
  timing.median_ms = samples[samples.size() / 2];
  timing.spread_ms = samples[samples.size() * 3 / 4] - samples[samples.size() / 4];
  return timing;
}

}  // namespace mulciber::conformance
