// The program of one case. Its inputs lie between guard bytes on the device, which reveals writes
// outside outputs and outputs that are not written.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "conformance/op_case.h"
#include "runtime/program.h"

namespace mulciber::conformance {

struct Placement {
  uint64_t guard_bytes = 0;  // before and after every buffer; a multiple of 256
  uint64_t seed = 0;         // for the offsets of buffers; 0: no offsets
};

class CaseProgram {
 public:
  /// `row` is forced for its op; null leaves every choice to selection. Throws KernelError or
  /// ShapeError when the device or the row cannot serve the case.
  CaseProgram(Device& device, const OpCase& op_case, const Kernel* row, Placement placement = {});

  Program& program() { return *program_; }
  const std::vector<Tensor>& outputs() const { return outputs_; }

  /// Writes the inputs, and poison (runtime/memory_guard.h) everywhere else.
  void fill(const std::vector<CpuTensor>& inputs);
  /// The outputs' bytes after a run.
  std::vector<std::vector<std::byte>> read_outputs();
  /// Describes a changed byte that belongs to no tensor of the program, or returns "". (Reads back
  /// each buffer: call it when the results are settled.)
  std::string damage();

  /// Device memory of output `index`, for fault injection.
  BufferView output_view(size_t index) const { return program_->view(outputs_[index]); }
  /// Device memory of the guard behind the last input.
  BufferView guard_view() const;

 private:
  struct Guarded {
    Buffer buffer;
    BufferView inside;
  };
  Guarded allocate(uint64_t bytes, uint64_t random);

  Device& device_;
  Placement placement_;
  std::vector<Guarded> inputs_;
  std::vector<Tensor> outputs_;
  std::unique_ptr<Program> program_;
};

/// The bytes of a tensor in the device's format.
std::vector<std::byte> to_bytes(const CpuTensor& tensor);
/// The numbers in such bytes, for a tensor with `columns` columns.
std::vector<double> values_of(const std::vector<std::byte>& bytes, DataType type, uint64_t columns);

}  // namespace mulciber::conformance
