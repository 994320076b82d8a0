#include "conformance/case_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <glm/gtc/packing.hpp>

#include "conformance/block_input.h"
#include "conformance/q8_1.h"
#include "runtime/memory_guard.h"

namespace mulciber::conformance {
namespace {

// The first byte of `bytes` that is outside every range of `owned` (begin, end) and not poison, or
// -1.
int64_t first_damaged(const std::vector<std::byte>& bytes,
                      std::vector<std::pair<uint64_t, uint64_t>> owned) {
  std::sort(owned.begin(), owned.end());
  uint64_t at = 0;
  owned.emplace_back(bytes.size(), bytes.size());
  for (const auto& [begin, end] : owned) {
    for (; at < begin; ++at) {
      if (bytes[at] != poison_byte(at)) return static_cast<int64_t>(at);
    }
    at = std::max(at, end);
  }
  return -1;
}

}  // namespace

std::vector<std::byte> to_bytes(const CpuTensor& tensor) {
  if (!tensor.bytes.empty()) return tensor.bytes;
  std::vector<std::byte> bytes(tensor.values.size() * size_of(tensor.type));
  for (size_t i = 0; i < tensor.values.size(); ++i) {
    if (tensor.type == DataType::kF16) {
      uint16_t half = glm::packHalf1x16(static_cast<float>(tensor.values[i]));
      std::memcpy(bytes.data() + 2 * i, &half, 2);
    } else if (tensor.type == DataType::kBF16) {
      const auto upper = static_cast<uint16_t>(bits_of(static_cast<float>(tensor.values[i])) >> 16);
      std::memcpy(bytes.data() + 2 * i, &upper, 2);
    } else {
      uint32_t word = tensor.type == DataType::kU32 ? static_cast<uint32_t>(tensor.values[i])
                                                    : bits_of(static_cast<float>(tensor.values[i]));
      std::memcpy(bytes.data() + 4 * i, &word, 4);
    }
  }
  return bytes;
}

namespace {

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

}  // namespace

std::vector<double> values_of(const std::vector<std::byte>& bytes, DataType type,
                              uint64_t columns) {
  std::vector<double> values;
  if (block_elements(type) > 1) {
    std::vector<uint32_t> words(bytes.size() / 4);
    std::memcpy(words.data(), bytes.data(), words.size() * 4);
    if (type == DataType::kQ8_1) return read_q8_1(columns, words);
    std::vector<double> sizes;
    read_blocks(type, columns, words, values, sizes);
    return values;
  }
  values.resize(bytes.size() / size_of(type));
  for (size_t i = 0; i < values.size(); ++i) values[i] = value_at(bytes, type, i);
  return values;
}

CaseProgram::Guarded CaseProgram::allocate(uint64_t bytes, uint64_t random) {
  // 16 bytes: kernels that read by address load four words at a time.
  const uint64_t step = std::max<uint64_t>(16, device_.capabilities().storage_alignment);
  const uint64_t before = placement_.guard_bytes + (placement_.seed ? random % 16 * step : 0);
  Guarded result;
  result.buffer =
      device_.memory().allocate(before + bytes + placement_.guard_bytes, MemoryUsage::kActivations);
  result.inside = result.buffer.view();
  result.inside.offset += before;
  result.inside.size = bytes;
  if (result.inside.address) result.inside.address += before;
  if (result.inside.mapped) result.inside.mapped += before;
  return result;
}

CaseProgram::CaseProgram(Device& device, const OpCase& op_case, const Kernel* row,
                         Placement placement)
    : device_(device), placement_(placement) {
  std::mt19937 random(static_cast<uint32_t>(placement.seed));
  std::vector<Tensor> inputs;
  for (const CaseInput& input : op_case.inputs) {
    Tensor tensor;
    tensor.shape = input.shape;
    tensor.type = input.type;
    inputs_.push_back(allocate(std::max<uint64_t>(4, (tensor.bytes() + 3) / 4 * 4), random()));
    tensor.view = inputs_.back().inside;
    inputs.push_back(tensor);
  }
  ProgramBuilder builder(device, op_case.name);
  builder.set_guard(placement.guard_bytes);
  if (row) builder.force(*row);
  outputs_ = op_case.build(builder, inputs);
  for (const Tensor& output : outputs_) builder.keep(output);
  program_ = std::make_unique<Program>(builder.build());
}

void CaseProgram::fill(const std::vector<CpuTensor>& inputs) {
  Uploader uploader(device_);
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (placement_.guard_bytes > 0) {
      const BufferView& whole = inputs_[i].buffer.view();
      uploader.copy(whole, poison(whole.size));
    }
    uploader.copy(inputs_[i].inside, to_bytes(inputs[i]));
  }
  uploader.copy(program_->arena(), poison(program_->arena().size));
  uploader.finish();
}

std::vector<std::vector<std::byte>> CaseProgram::read_outputs() {
  std::vector<std::vector<std::byte>> results;
  for (const Tensor& output : outputs_)
    results.push_back(download(device_, program_->view(output)));
  return results;
}

std::string CaseProgram::damage() {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const BufferView &whole = inputs_[i].buffer.view(), &inside = inputs_[i].inside;
    const uint64_t begin = inside.offset - whole.offset;
    const int64_t at = first_damaged(download(device_, whole), {{begin, begin + inside.size}});
    if (at >= 0) {
      return fmt::format("wrote outside input {}, {} bytes from its start", i,
                         at - static_cast<int64_t>(begin));
    }
  }
  if (program_->arena().size == 0) return "";
  std::vector<std::pair<uint64_t, uint64_t>> owned;
  for (const PlannedTensor& tensor : program_->plan().tensors) {
    // 16-bit numbers share a word in pairs, so a tensor owns the whole of its last word.
    if (tensor.first_use >= 0)
      owned.emplace_back(tensor.offset, tensor.offset + (tensor.bytes + 3) / 4 * 4);
  }
  const int64_t at = first_damaged(download(device_, program_->arena()), owned);
  if (at < 0) return "";
  int64_t nearest = -1;
  for (const auto& [begin, end] : owned) {
    if (static_cast<int64_t>(end) <= at) nearest = std::max(nearest, static_cast<int64_t>(end));
  }
  return nearest < 0
             ? fmt::format("wrote before the first tensor of the arena, at byte {}", at)
             : fmt::format("wrote {} bytes behind the end of a tensor of the arena", at - nearest);
}

BufferView CaseProgram::guard_view() const {
  BufferView view = inputs_.back().inside;
  view.offset += view.size;
  if (view.address) view.address += view.size;
  if (view.mapped) view.mapped += view.size;
  view.size = 4;
  return view;
}

}  // namespace mulciber::conformance
